import type { TObject } from '@sinclair/typebox';
import { TypeCompiler } from '@sinclair/typebox/compiler';
import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { examples } from '../../../src/api/http/examples.ts';
import { documentRoute } from '../../../src/api/operator/http/platform.ts';
import { document, routes } from '../../../src/api/routes.ts';
import { Platform } from '../platform.ts';

const committedPath = join(import.meta.dir, '../../../docs/openapi.json');

test('the committed document is the one that the routes give (bun test/api/emit-openapi.ts writes it)', () => {
  expect(JSON.parse(readFileSync(committedPath, 'utf8'))).toEqual(JSON.parse(JSON.stringify(document)));
});

test('every route is one documented operation', () => {
  const { paths } = document as { paths: Record<string, Record<string, { operationId: string }>> };
  const documented = Object.values(paths).flatMap(path => Object.values(path).map(({ operationId }) => operationId));
  expect(documented.length).toBeGreaterThan(10);
  expect(documented.toSorted()).toEqual(routes.map(({ operationId }) => operationId).toSorted());
  expect(new Set(documented).size).toBe(documented.length);
});

test('every path parameter is described, and every reference leads somewhere', () => {
  for (const route of routes) {
    const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    expect(Object.keys(route.params?.properties ?? {})).toEqual(inPath as string[]);
  }
  const text = JSON.stringify(document);
  const references = [...text.matchAll(/"#\/components\/(\w+\/\w+)"/g)].map(([, place = '']) => place.split('/'));
  expect(references.length).toBeGreaterThan(10);
  for (const place of references) expect((document as { components: object }).components).toHaveProperty(place);
});

test('every example is of an operation that is there, and its schema takes it', () => {
  for (const [operationId, example] of Object.entries(examples)) {
    const route = routes.find(each => each.operationId === operationId);
    expect(route?.body, operationId).toBeTruthy();
    // A member that no schema names would be ignored, and misspelt ones would go unnoticed.
    const members = route?.body ? Object.keys((route.body as TObject).properties) : [];
    expect(members, operationId).toEqual(expect.arrayContaining(Object.keys(example)));
    expect(route?.body && [...TypeCompiler.Compile(route.body).Errors(example)], operationId).toEqual([]);
  }
});

test('every operation has a description, a tag and, where it takes JSON, an example', () => {
  const { paths } = document as unknown as {
    paths: Record<string, Record<string, { operationId: string; description: string; tags: string[] }>>;
  };
  for (const { operationId, description, tags } of Object.values(paths).flatMap(path => Object.values(path))) {
    expect(description, operationId).toMatch(/^(Called|Takes no credential).*\.$/);
    expect(tags, operationId).toHaveLength(1);
  }
  const said = (id: string) =>
    Object.values(paths)
      .flatMap(path => Object.values(path))
      .find(each => each.operationId === id);
  expect(said('createSandbox')?.description).toBe(
    'Called by a key of the team, by a member of the team or by an operator for the team. A person needs the role ' +
      'developer in the team, or more. The body has at most 4 MiB; members that are not listed are ignored. The audit ' +
      'log has each call that is not refused. It does not wait for the disk: a loss of power in that moment may take it back.',
  );
  const without = routes.filter(({ body, upload, operationId }) => body && !upload && !examples[operationId]);
  expect(without.map(({ operationId }) => operationId)).toEqual([]);
});

test('the document is served without a credential', async () => {
  await using platform = await Platform.start();
  const answer = await platform.call('GET', '/openapi.json', undefined, { 'x-api-key': '' });
  expect(answer).toMatchObject({ status: 200, body: { openapi: '3.1.0' } });
});

test('the document is written as text once, not for each who asks', async () => {
  let written = 0;
  const { handle } = documentRoute(() => ({ openapi: String(++written) }));
  const input = {} as Parameters<typeof handle>[1];
  expect([(await handle({}, input)).body, (await handle({}, input)).body]).toEqual(
    Array.from({ length: 2 }, () => expect.objectContaining({ text: '{"openapi":"1"}' })),
  );
});
