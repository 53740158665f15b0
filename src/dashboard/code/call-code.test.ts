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

test('what the document does not have is shown by curl alone', () => {
  expect(Object.keys(codeOfCall(document, { method: 'POST', path: '/nowhere' }, origin))).toEqual(['curl']);
});

test('values are those of Python', () => {
  expect(pythonOf({ a: [true, null, 'x"', 1.5], b: undefined })).toBe(String.raw`{"a": [True, None, "x\"", 1.5]}`);
});
