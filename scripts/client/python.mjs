// The operations of the API's document as Python: a TypedDict for each schema, and a method for each operation.

/** The text of `clients/python/atoll_client/operations.py`. */
export function pythonOf(document) {
  const operations = Object.entries(document.paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })),
    )
    .sort((a, b) => (a.operationId < b.operationId ? -1 : 1));
  const schemas = new Schemas(document.components.schemas);
  const methods = operations.map(operation => methodOf(operation, schemas)).join('\n');
  return `"""Every operation of the API. Made from its document by npm run client; changes here are lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Literal, Optional, TypedDict, Union

from .caller import Bytes, Caller

if TYPE_CHECKING:
    from typing_extensions import NotRequired

${schemas.text()}

class Operations(Caller):
    """Every operation of the API as a method."""

${methods}`;
}

/** The schemas as classes; nested ones get names of their own. */
class Schemas {
  #classes = new Map();
  /** They come after the classes: Python evaluates them at once. */
  #aliases = [];

  constructor(named) {
    for (const [name, schema] of Object.entries(named)) this.#define(className(name), schema);
  }

  text() {
    return [...this.#classes.values(), this.#aliases.join('')].join('\n\n');
  }

  /** The type of a value; `name` is the name for a class of its own. */
  typeOf(schema, name) {
    if (schema.$ref) return className(schema.$ref.split('/').pop());
    if (schema.const !== undefined) return `Literal[${literal(schema.const)}]`;
    if (schema.enum) return `Literal[${schema.enum.map(literal).join(', ')}]`;
    if (schema.anyOf) {
      const objects = schema.anyOf.filter(({ properties }) => properties).length;
      const nameOf = index => (objects > 1 ? `${name}${index + 1}` : name);
      const parts = [...new Set(schema.anyOf.map((part, index) => this.typeOf(part, nameOf(index))))];
      const others = parts.filter(part => part !== 'None');
      const type = others.length === 1 ? others[0] : `Union[${others.join(', ')}]`;
      return others.length === parts.length ? type : `Optional[${type}]`;
    }
    switch (schema.type) {
      case 'string':
        return schema.format === 'binary' ? 'Bytes' : 'str';
      case 'integer':
        return 'int';
      case 'number':
        return 'float';
      case 'boolean':
        return 'bool';
      case 'null':
        return 'None';
      case 'array':
        return `List[${this.typeOf(schema.items ?? {}, `${name}Item`)}]`;
      case 'object':
        if (Object.keys(schema.properties ?? {}).length > 0) return this.#define(name, schema);
        return typeof schema.additionalProperties === 'object'
          ? `Dict[str, ${this.typeOf(schema.additionalProperties, `${name}Value`)}]`
          : 'Dict[str, Any]';
      default:
        return 'Any';
    }
  }

  #define(name, schema) {
    if (schema.type !== 'object' || !schema.properties) {
      this.#aliases.push(`${name} = ${this.typeOf(schema, `${name}Value`)}\n`);
      return name;
    }
    this.#classes.set(name, ''); // its place is before its members
    const required = new Set(schema.required ?? []);
    const members = Object.entries(schema.properties).map(([member, value]) => {
      const type = this.typeOf(value, `${name}${capital(member)}`);
      return { member, type: required.has(member) ? type : `NotRequired[${type}]`, text: value.description };
    });
    this.#classes.set(name, classText(name, members));
    return name;
  }
}

function classText(name, members) {
  if (members.every(({ member }) => isName(member))) {
    const lines = members.map(
      ({ member, type, text }) => `${text ? `    # ${oneLine(text)}\n` : ''}    ${member}: ${type}\n`,
    );
    return `class ${name}(TypedDict):\n${lines.join('')}`;
  }
  const pairs = members.map(({ member, type }) => `        ${literal(member)}: ${quoted(type)},\n`);
  return `${name} = TypedDict(\n    ${literal(name)},\n    {\n${pairs.join('')}    },\n)\n`;
}

function methodOf(operation, schemas) {
  const { operationId, method, path, summary, parameters = [], requestBody, deprecated } = operation;
  const named = place => parameters.filter(({ in: where }) => where === place);
  const name = snake(operationId);
  const body = bodyOf(requestBody);
  const answer = answerOf(operation, schemas);
  const inPath = named('path').map(parameter => `${snake(parameter.name)}: str`);
  const optional = [...named('query'), ...named('header')].map(parameter => {
    const type = schemas.typeOf(parameter.schema, `${capital(operationId)}${capital(parameter.name)}`);
    return parameter.required
      ? `${snake(parameter.name)}: ${type}`
      : `${snake(parameter.name)}: Optional[${type}] = None`;
  });
  const ofBody = body && {
    type: body.kind === 'json' ? schemas.typeOf(body.schema, `${capital(operationId)}Body`) : 'Bytes',
    required: requestBody.required,
  };
  const others = [
    ...(ofBody ? [ofBody.required ? `body: ${ofBody.type}` : `body: Optional[${ofBody.type}] = None`] : []),
    ...optional,
    'timeout: Optional[float] = None',
    'token: Optional[str] = None',
  ];
  const values = place =>
    `{${named(place)
      .map(parameter => `${literal(parameter.name)}: ${snake(parameter.name)}`)
      .join(', ')}}`;
  const args = [
    literal(operationId),
    literal(method.toUpperCase()),
    literal(path),
    ...(named('path').length > 0 ? [`path_values=${values('path')}`] : []),
    ...(named('query').length > 0 ? [`query=${values('query')}`] : []),
    ...(named('header').length > 0 ? [`headers=${values('header')}`] : []),
    ...(ofBody ? [`body=body`] : []),
    'timeout=timeout',
    'token=token',
  ];
  return `    def ${name}(
        self,
${inPath.map(text => `        ${text},\n`).join('')}        *,
${others.map(text => `        ${text},\n`).join('')}    ) -> ${answer.type}:
        """${oneLine(summary)}${deprecated ? ' (deprecated)' : ''}"""
        return self.${answer.way}(
${args.map(text => `            ${text},\n`).join('')}        )
`;
}

function bodyOf(requestBody) {
  if (!requestBody) return undefined;
  const { 'application/json': json } = requestBody.content;
  return json ? { kind: 'json', schema: json.schema } : { kind: 'bytes' };
}

/** The result of a success, and how to ask for it. */
function answerOf({ operationId, responses }, schemas) {
  const successes = Object.entries(responses).filter(([status]) => status.startsWith('2'));
  const contents = successes.flatMap(([, { content }]) => Object.entries(content ?? {}));
  const [[type] = []] = contents;
  if (type === undefined) return { type: 'None', way: 'ask_nothing' };
  const [[, content] = []] = contents;
  if (type === 'text/event-stream')
    return { type: `Iterator[${schemas.typeOf(content['x-atoll-event'], operationId)}]`, way: 'follow' };
  if (type === 'application/octet-stream') return { type: 'bytes', way: 'ask_bytes' };
  if (type !== 'application/json') return { type: 'str', way: 'ask_text' };
  const types = contents.map(([, { schema }]) => schemas.typeOf(schema, `${capital(operationId)}Answer`));
  const [first, ...rest] = [...new Set(types)];
  return { type: rest.length > 0 ? `Union[${[first, ...rest].join(', ')}]` : first, way: 'ask_json' };
}

/** The name of a schema, unless Python already uses it. */
const className = name => (name === 'Error' ? 'ApiError' : name);
const capital = name =>
  name
    .split(/[^A-Za-z0-9]+/)
    .map(part => part.charAt(0).toUpperCase() + part.slice(1))
    .join('');
/** `sandboxID` is `sandbox_id`, `idempotency-key` is `idempotency_key`. */
const snake = name =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/[^A-Za-z0-9]+/g, '_')
    .toLowerCase();
const keywords = new Set([
  'from',
  'in',
  'is',
  'not',
  'and',
  'or',
  'if',
  'else',
  'for',
  'class',
  'def',
  'global',
  'import',
]);
const isName = text => /^[A-Za-z_]\w*$/.test(text) && !keywords.has(text);
const literal = value =>
  value === true ? 'True' : value === false ? 'False' : value === null ? 'None' : JSON.stringify(value);
const quoted = type => JSON.stringify(type);
const oneLine = text => text.replace(/\s+/g, ' ').replaceAll('"""', "'''").replaceAll('\\', '\\\\');
