import { Kind } from '@sinclair/typebox';
import type { TObject, TSchema } from '@sinclair/typebox';
import { validator } from './validate.ts';
import type { Validator } from './validate.ts';

/**
 * Reads a query string by a schema of integers, booleans, texts and arrays of texts (comma-separated). Of a repeated
 * name the first value counts; unknown names are ignored.
 */
export function queryValidator(schema: TObject): Validator {
  const validate = validator(schema, 'query');
  const members = Object.entries(schema.properties);
  return query => {
    const params = new URLSearchParams(String(query));
    const values: Array<[string, unknown]> = [];
    for (const [name, member] of members) {
      const text = params.get(name);
      if (text !== null) values.push([name, convert(member, text)]);
    }
    return validate(Object.fromEntries(values));
  };
}

/** Reads those headers that a schema of texts names, in lower case; all others are ignored. */
export function headersValidator(schema: TObject): Validator {
  const validate = validator(schema, 'headers');
  const names = Object.keys(schema.properties);
  return headers => {
    const given = headers as Headers;
    return validate(
      Object.fromEntries(
        names.flatMap(name => {
          const text = given.get(name);
          return text === null ? [] : [[name, text]];
        }),
      ),
    );
  };
}

/** A value that can't be converted stays text, for the validator to refuse by the member's name. */
function convert(schema: TSchema, text: string): unknown {
  switch (schema[Kind]) {
    case 'Integer':
      return /^-?\d+$/.test(text) ? Number(text) : text;
    case 'Boolean':
      return text === 'true' ? true : text === 'false' ? false : text;
    case 'Array':
      return text === '' ? [] : text.split(',');
    default:
      return text;
  }
}
