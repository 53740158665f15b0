import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { declaredTypes, fieldsOf, type DeclaredType } from './declared-types.ts';

/**
 * What a client can send, one line each: the operation itself (`POST /sandboxes`), and for each field of a request the
 * operation and the field's place (`POST /sandboxes body.network.allowOut`, `… query.limit`, `…
 * header.idempotency-key`). Path parameters are `{}`, map entries `*`; a field of a list's items has the list's name.
 */
export type ClientOperations = Set<string>;

const methods = ['get', 'put', 'post', 'delete', 'patch'];
const operationOf = (method: string, path: string) => `${method.toUpperCase()} ${path.replace(/\{[^}]*\}/g, '{}')}`;

/** For the npm client: its declarations hold the types that were generated from the API's document. */
export function operationsOfJavaScript(declarations: string): ClientOperations {
  const types = declaredTypes(declarations, ['paths', 'components']);
  const found: ClientOperations = new Set();
  for (const [path, operations] of membersOf(types.get('paths'))) {
    for (const method of methods) {
      const operation = membersOf(membersOf(operations).get(method));
      if (operation.size === 0) continue;
      const name = operationOf(method, path);
      found.add(name);
      for (const kind of ['query', 'header'])
        for (const field of fieldsOf(membersOf(operation.get('parameters')).get(kind), types))
          found.add(`${name} ${kind}.${kind === 'header' ? field.toLowerCase() : field}`);
      const content = membersOf(membersOf(operation.get('requestBody')).get('content'));
      for (const body of content.values())
        for (const field of fieldsOf(body, types)) found.add(`${name} body.${field}`);
    }
  }
  return found;
}

const membersOf = (type: DeclaredType | undefined): Map<string, DeclaredType> =>
  type?.kind === 'object' ? type.members : new Map();

/** For the PyPI client: a module for each operation, and one for each model, in the folder `e2b/api/client`. */
export function operationsOfPython(folder: string): ClientOperations {
  const models = new Map(
    readdirSync(join(folder, 'models'))
      .filter(file => file.endsWith('.py'))
      .map(file => readFileSync(join(folder, 'models', file), 'utf8'))
      .map(text => [/^class (\w+)/m.exec(text)?.[1] ?? '', text]),
  );
  const found: ClientOperations = new Set();
  for (const group of readdirSync(join(folder, 'api'), { withFileTypes: true })) {
    if (!group.isDirectory() || group.name === '__pycache__') continue;
    for (const file of readdirSync(join(folder, 'api', group.name)).filter(name => /^[a-z]\w*\.py$/.test(name))) {
      const text = readFileSync(join(folder, 'api', group.name, file), 'utf8');
      const method = /"method": "(\w+)"/.exec(text)?.[1];
      const path = /"url": f?"([^"]+)"/.exec(text)?.[1];
      if (method === undefined || path === undefined) throw new Error(`${file} names no method and path`);
      const name = operationOf(method, path);
      found.add(name);
      for (const [, field = ''] of text.matchAll(/^ +params\["([^"]+)"\] =/gm)) found.add(`${name} query.${field}`);
      for (const [, field = ''] of text.matchAll(/^ +headers\["([^"]+)"\] =/gm))
        if (field !== 'Content-Type') found.add(`${name} header.${field.toLowerCase()}`);
      for (const [, model = ''] of (/\bbody: ([^,=]+),/.exec(text)?.[1] ?? '').matchAll(/(\w+)/g))
        for (const field of pythonFields(model, models, new Set())) found.add(`${name} body.${field}`);
    }
  }
  return found;
}

/** The fields of a model from its `from_dict`, which pops each by its name on the wire and names its model. */
function pythonFields(model: string, models: Map<string, string>, above: Set<string>): string[] {
  const text = models.get(model);
  const body = text?.slice(text.indexOf('def from_dict'));
  if (body === undefined || above.has(model)) return [];
  const within = new Set([...above, model]);
  return body
    .split(/\.pop\(\s*/)
    .slice(1)
    .flatMap((part, index, parts) => {
      const field = /^"([^"]+)"/.exec(part)?.[1] ?? '';
      // A parser declared before its `pop` belongs to it.
      const before = (index === 0 ? body.split('.pop(')[0] : parts[index - 1]) ?? '';
      const parser = /def _parse_\w+[\s\S]*$/.exec(before)?.[0] ?? '';
      const own = part.replace(/def _parse_\w+[\s\S]*$/, '');
      const nested = [...`${parser}${own}`.matchAll(/(\w+)\.from_dict\(/g)].flatMap(([, name = '']) =>
        pythonFields(name, models, within),
      );
      return [field, ...nested.map(each => `${field}.${each}`)];
    });
}

/** Every member of a body that the generated Python models read, by its name on the wire. */
export function membersOfPython(folder: string): Set<string> {
  const texts = readdirSync(join(folder, 'models'))
    .filter(file => file.endsWith('.py'))
    .map(file => readFileSync(join(folder, 'models', file), 'utf8'));
  return new Set(texts.flatMap(text => [...text.matchAll(/\.pop\(\s*"([^"]+)"/g)].map(([, name = '']) => name)));
}
