import { expect, test } from 'bun:test';
import { Type } from '@sinclair/typebox';
import { openApiDocument } from './openapi.ts';
import { route, type Route } from './route.ts';

type Json = Record<string, any>;

const base = { summary: 'Does it', auth: 'team' as const, responses: { 204: { description: 'Done' } } };
const made = (spec: object) =>
  route({
    operationId: 'op',
    method: 'GET',
    path: '/things',
    ...base,
    ...spec,
    handle: (async () => {}) as never,
  } as never);
/** In the form that is sent. */
const documentOf = (...specs: object[]) =>
  JSON.parse(JSON.stringify(openApiDocument(specs.map(made) as Route[], '1.2.3'))) as Json;
/** The only operation of a document, and the whole document. */
function operationOf(spec: object): { operation: Json; document: Json } {
  const document = documentOf(spec);
  const [path] = Object.values(document['paths'] as Json);
  return { operation: Object.values(path as Json)[0] as Json, document };
}

test('a document has its version, and operations by path and method, in order', () => {
  const document = documentOf(
    { path: '/b/{id}', method: 'POST', operationId: 'make' },
    { path: '/a', operationId: 'first' },
    { path: '/b/{id}', operationId: 'look' },
    { path: '/admin/c', operationId: 'operate' },
  );
  expect(document).toMatchObject({ openapi: '3.1.0', info: { version: '1.2.3' }, servers: [{ url: '/' }] });
  expect(Object.keys(document['paths'])).toEqual(['/a', '/admin/c', '/b/{id}']);
  expect(Object.keys(document['paths']['/b/{id}'])).toEqual(['post', 'get']);
  expect(document['paths']['/b/{id}']['get']).toMatchObject({ operationId: 'look', summary: 'Does it' });
  expect(document['tags']).toEqual([{ name: 'a' }, { name: 'b' }, { name: 'c' }]);
});

test('the same routes give the same document, whatever their order', () => {
  const specs = ['/c', '/a', '/b'].map(path => ({ path, operationId: path, errors: [404, 409] }));
  expect(JSON.stringify(documentOf(...specs.toReversed()))).toBe(JSON.stringify(documentOf(...specs)));
});

test('an operation belongs to the resource that its path names', () => {
  const tagOf = (path: string) => operationOf({ path }).operation['tags'];
  expect(tagOf('/sandboxes/{id}/logs')).toEqual(['sandboxes']);
  expect(tagOf('/v2/sandboxes')).toEqual(['sandboxes']);
  expect(tagOf('/admin/v3/teams')).toEqual(['teams']);
  expect(tagOf('/version')).toEqual(['version']);
  expect(tagOf('/{id}')).toEqual(['other']);
});

test('the ways to call an operation are listed, with the least role of a member', () => {
  const { operation } = operationOf({ role: 'admin', proof: true, deprecated: true });
  expect(operation).toMatchObject({ 'x-atoll-role': 'admin', 'x-atoll-proof': true, deprecated: true });
  expect(operation['security']).toEqual([
    { apiKey: [] },
    { accessToken: [], teamId: [] },
    { session: [], teamId: [] },
    { adminToken: [], teamId: [] },
    { operatorSession: [], teamId: [] },
  ]);
  const open = operationOf({ auth: 'none' }).operation;
  expect(open['security']).toEqual([]);
  for (const name of ['x-atoll-role', 'x-atoll-proof', 'deprecated', 'parameters', 'requestBody'])
    expect([name, name in open]).toEqual([name, false]);
  const schemes = documentOf({})['components']['securitySchemes'] as Json;
  for (const way of operation['security'] as Json[])
    for (const name of Object.keys(way)) expect(schemes[name]).toBeDefined();
});

test('parameters say where they are, whether they are needed, and what they mean', () => {
  const { operation } = operationOf({
    path: '/things/{id}',
    params: Type.Object({ id: Type.String({ description: 'Which' }) }),
    query: Type.Object({ many: Type.Optional(Type.Array(Type.String())), one: Type.Number() }),
    headers: Type.Object({ 'x-a': Type.Optional(Type.String()) }),
  });
  expect(operation['parameters']).toEqual([
    { name: 'id', in: 'path', required: true, description: 'Which', schema: { type: 'string' } },
    {
      ...{ name: 'many', in: 'query', required: false, style: 'form', explode: false },
      schema: { type: 'array', items: { type: 'string' } },
    },
    { name: 'one', in: 'query', required: true, schema: { type: 'number' } },
    { name: 'x-a', in: 'header', required: false, schema: { type: 'string' } },
  ]);
  expect(operation['responses']).toHaveProperty('400');
});

test('a body is needed unless it is optional; an upload is bytes', () => {
  const body = Type.Object({ n: Type.Number() });
  const schema = { type: 'object', required: ['n'], properties: { n: { type: 'number' } } };
  expect(operationOf({ method: 'POST', body }).operation['requestBody']).toEqual({
    required: true,
    content: { 'application/json': { schema } },
  });
  expect(operationOf({ method: 'POST', body, bodyOptional: true }).operation['requestBody'].required).toBe(false);
  expect(operationOf({ method: 'PUT', upload: true }).operation['requestBody']).toEqual({
    required: true,
    content: { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } },
  });
  const example = operationOf({ method: 'POST', operationId: 'createSandbox', body }).operation['requestBody'];
  expect(example.content['application/json'].example).toBeDefined();
});

test('answers are JSON, text, or bytes, with their headers', () => {
  const { operation } = operationOf({
    responses: {
      200: { description: 'JSON', schema: Type.String(), headers: { 'X-Next': 'Where it goes on' } },
      201: { description: 'Text', schema: Type.String(), contentType: 'text/plain' },
      202: { description: 'Bytes', binary: true },
      203: { description: 'Events', binary: true, contentType: 'text/event-stream', item: Type.Number() },
      204: { description: 'Nothing' },
    },
  });
  const bytes = { type: 'string', format: 'binary' };
  expect(operation['responses']).toMatchObject({
    200: {
      description: 'JSON',
      headers: { 'X-Next': { description: 'Where it goes on', schema: { type: 'string' } } },
      content: { 'application/json': { schema: { type: 'string' } } },
    },
    201: { content: { 'text/plain': { schema: { type: 'string' } } } },
    202: { content: { 'application/octet-stream': { schema: bytes } } },
    203: { content: { 'text/event-stream': { schema: bytes, 'x-atoll-event': { type: 'number' } } } },
  });
  expect(operation['responses']['204']).toEqual({ description: 'Nothing' });
  expect(operation['responses']['202']).not.toHaveProperty('headers');
  expect(operation['responses']['202'].content['application/octet-stream']).not.toHaveProperty('x-atoll-event');
});

test('errors refer to answers that are in the document once', () => {
  const { operation, document } = operationOf({ errors: [409, 404] });
  expect(operation['responses']['409']).toEqual({ $ref: '#/components/responses/Error409' });
  const { responses, schemas } = document['components'] as Json;
  expect(Object.keys(responses)).toEqual([401, 403, 404, 409, 429, 500, 503].map(status => `Error${status}`));
  expect(responses.Error409).toEqual({
    description: 'Conflicts with the present state',
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
  });
  expect(schemas.Error.properties).toHaveProperty('message');
});

test('schemas with a name are referred to, wherever they are', () => {
  const named = Type.Object({ a: Type.String() }, { $id: 'Named' });
  const other = Type.Object({ list: Type.Array(named) }, { $id: 'Another' });
  const union = Type.Union([named, Type.Null()]);
  const { operation, document } = operationOf({
    method: 'POST',
    body: Type.Object({ other, union, closed: Type.Object({}, { additionalProperties: false }) }),
    responses: { 200: { description: '', schema: named } },
  });
  const { schemas } = document['components'] as Json;
  const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
  expect(operation['responses']['200'].content['application/json'].schema).toEqual(ref('Named'));
  expect(operation['requestBody'].content['application/json'].schema.properties).toEqual({
    other: ref('Another'),
    union: { anyOf: [ref('Named'), { type: 'null' }] },
    closed: { type: 'object', additionalProperties: false },
  });
  expect(Object.keys(schemas)).toEqual(['Another', 'Error', 'Named']);
  expect(schemas.Named).toEqual({ type: 'object', required: ['a'], properties: { a: { type: 'string' } } });
  expect(schemas.Another.properties.list).toEqual({ type: 'array', items: ref('Named') });
});

test('words are an enum', () => {
  const word = Type.Union([Type.Literal('a'), Type.Literal('b')]);
  const mixed = Type.Union([Type.Literal('a'), Type.Number()]);
  const { operation } = operationOf({ method: 'POST', body: Type.Object({ word, mixed }) });
  const { properties } = operation['requestBody'].content['application/json'].schema;
  expect(properties.word).toEqual({ type: 'string', enum: ['a', 'b'] });
  expect(properties.mixed.anyOf).toHaveLength(2);
});

test('two schemas of one name must be the same', () => {
  const one = () => Type.Object({ a: Type.String() }, { $id: 'Same' });
  const ask = (...bodies: object[]) =>
    documentOf(
      ...bodies.map((body, index) => ({ method: 'POST', path: `/p${index}`, operationId: `o${index}`, body })),
    );
  expect(ask(one(), one())['components'].schemas).toHaveProperty('Same');
  expect(() => ask(one(), Type.Object({ b: Type.String() }, { $id: 'Same' }))).toThrow('two schemas are named Same');
});
