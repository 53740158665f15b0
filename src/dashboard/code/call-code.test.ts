import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { codeOfCall, operationOf, pythonOf } from './call-code.ts';
import type { ApiDocument } from './call-code.ts';

const document = JSON.parse(
  readFileSync(new URL('../../../docs/openapi.json', import.meta.url), 'utf8'),
) as ApiDocument;
const origin = 'http://localhost:3000';

test('an action is found in the document by its path, and a literal part beats a member', () => {
  const named = (method: string, path: string) => operationOf(document, { method, path })?.operation.operationId;
  expect(named('POST', '/sandboxes/i1/pause')).toBe('pauseSandbox');
  expect(named('POST', '/templates/tags')).toBe('assignTemplateTags');
  expect(named('POST', '/nowhere')).toBeUndefined();
});

test('an action of a team is called with its key', () => {
  const code = codeOfCall(document, { method: 'POST', path: '/sandboxes/i1/pause', body: { memory: true } }, origin);
  expect(code['JavaScript']).toContain('await platform.pauseSandbox({ sandboxID: "i1", body: {"memory":true} });');
  expect(code['Python']).toContain('platform.pause_sandbox("i1", body={"memory": True})');
  expect(code['curl']).toBe(
    `curl -X POST '${origin}/sandboxes/i1/pause' \\\n  -H "X-API-Key: $ATOLL_API_KEY" \\\n` +
      `  -H 'Content-Type: application/json' \\\n  -d '{"memory":true}'`,
  );
});

test('an action of the operator takes the token, and one of people their own', () => {
  const call = { method: 'POST', path: '/admin/teams', body: { name: "O'Hara", slug: 'o' } };
  const code = codeOfCall(document, call, origin);
  expect(code['JavaScript']).toContain('adminToken: process.env.ATOLL_ADMIN_TOKEN');
  expect(code['Python']).toContain('admin_token=os.environ["ATOLL_ADMIN_TOKEN"]');
  // A quote must not end the shell's string.
  expect(code['curl']).toContain(String.raw`O'\''Hara`);
});

test('a request that the document lacks is shown only with curl', () => {
  expect(Object.keys(codeOfCall(document, { method: 'POST', path: '/nowhere' }, origin))).toEqual(['curl']);
});

test('values are those of Python', () => {
  expect(pythonOf({ a: [true, null, 'x"', 1.5], b: undefined })).toBe(String.raw`{"a": [True, None, "x\"", 1.5]}`);
});

/** Operations that a person may call, for a team or for themselves. */
const own: ApiDocument = {
  paths: {
    '/things/{thingID}': { get: { operationId: 'getThing', security: [{ accessToken: [], teamId: [] }] } },
    '/things/{thing-id}/{part}': { get: { operationId: 'getAny' } },
    '/things/new': { get: { operationId: 'getNew', security: [{ accessToken: [] }] } },
    '/things/{thingID}/all': { get: { operationId: 'getAll', security: [{ adminToken: [], teamId: [] }] } },
  },
};

test('among matching paths, the one with the fewest members is chosen, with its values', () => {
  const found = (path: string) => operationOf(own, { method: 'GET', path });
  expect(found('/things/new')).toMatchObject({ operation: { operationId: 'getNew' }, values: {} });
  expect(found('/things/a%2Fb')).toMatchObject({ operation: { operationId: 'getThing' }, values: { thingID: 'a/b' } });
  expect(found('/things/a/all')).toMatchObject({ operation: { operationId: 'getAll' }, values: { thingID: 'a' } });
  for (const path of ['/things', '/things/a/b/c', '/others/a']) expect(found(path)).toBeNull();
  expect(operationOf(own, { method: 'POST', path: '/things/new' })).toBeNull();
});

test('the team is said where an operation is for one, and nowhere else', () => {
  const of = (path: string, teamID?: string) => codeOfCall(own, { method: 'GET', path, teamID }, origin);
  const named = (code: Record<string, string>) => Object.values(code).map(text => text.includes('t1'));
  expect(named(of('/things/a', 't1'))).toEqual([true, true, true]);
  expect(named(of('/things/a/all', 't1'))).toEqual([true, true, true]);
  expect(named(of('/things/new', 't1'))).toEqual([false, false, false]);
  expect(of('/things/a', 't1')).toEqual({
    JavaScript: expect.stringContaining(
      `atoll({ url: "${origin}", accessToken: process.env.ATOLL_ACCESS_TOKEN, teamId: "t1" });\n` +
        'await platform.getThing({ thingID: "a" });',
    ),
    Python: expect.stringContaining(
      `Atoll("${origin}", access_token=os.environ["ATOLL_ACCESS_TOKEN"], team_id="t1")\nplatform.get_thing("a")`,
    ),
    curl:
      `curl -X GET '${origin}/things/a' \\\n  -H "Authorization: Bearer $ATOLL_ACCESS_TOKEN" \\\n` +
      "  -H 'X-Team-ID: t1'",
  });
  expect(of('/things/a')).toMatchObject({ curl: expect.not.stringContaining('X-Team-ID') });
  expect(of('/things/a')['JavaScript']).toContain('ATOLL_ACCESS_TOKEN });');
});

test('what nobody has to be known for is called without a credential', () => {
  const { JavaScript, Python, curl } = codeOfCall(own, { method: 'GET', path: '/things/a/b' }, origin);
  expect(JavaScript).toContain(`atoll({ url: "${origin}" });\nawait platform.getAny({ "thing-id": "a", part: "b" });`);
  expect(Python).toBe(`from atoll_client import Atoll\n\nplatform = Atoll("${origin}")\nplatform.get_any("a", "b")`);
  expect(curl).toBe(`curl -X GET '${origin}/things/a/b'`);
});
