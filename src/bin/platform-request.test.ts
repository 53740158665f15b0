import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { firstTeam } from '../api/team/rules/first-team.ts';
import { followAt, listOf, operatorRequest, ownPlatform, requestTo, signedInPlatform } from './platform-request.ts';
import { recordInstance } from './platform/instance.ts';
import { readSettings } from './settings/settings.ts';

type Asked = { line: string; key: string | null; team: string | null; body: string };

let dataDir: string;
let platform: Bun.Server<undefined>;
let asked: Asked[];
let answer: (path: string) => Response;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'atoll-request-'));
  [asked, answer] = [[], () => new Response()];
  platform = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const [key, team] = ['X-API-Key', 'X-Team-ID'].map(name => request.headers.get(name)) as [string, string];
      const who = key ?? request.headers.get('X-Admin-Token');
      asked.push({ line: `${request.method} ${pathname}${search}`, key: who, team, body: await request.text() });
      return answer(pathname + search);
    },
  });
});
afterEach(async () => {
  await platform.stop(true);
  rmSync(dataDir, { recursive: true });
});

const settings = () => readSettings({ ATOLL_DATA_DIR: dataDir });
const signedIn = () => signedInPlatform({ url: platform.url.origin, apiKey: 'key', domain: 'h' });
const lines = () => asked.map(({ line }) => line);

/** A platform that runs on the data directory. */
function begin(teams: object[]) {
  const origin = platform.url.origin;
  recordInstance(dataDir, { url: origin, origin });
  writeFileSync(join(dataDir, 'admin-token'), 'operator\n');
  answer = path => (path === '/admin/teams' ? Response.json(teams) : Response.json({ path }));
}

test('a request goes with its key and body, and an empty answer is undefined', async () => {
  answer = path => (path === '/none' ? new Response(null, { status: 204 }) : Response.json({ a: 1 }));
  const request = requestTo(signedIn());
  expect(await request('POST', '/a', { b: 1 })).toEqual({ a: 1 });
  expect(await request('GET', '/none')).toBeUndefined();
  expect(asked).toEqual([
    { line: 'POST /a', key: 'key', team: null, body: '{"b":1}' },
    { line: 'GET /none', key: 'key', team: null, body: '' },
  ]);
});

test('a caller can ask for the headers of an answer', async () => {
  answer = () => Response.json([], { headers: { 'X-Partial': 'true' } });
  const told: (string | null)[] = [];
  await requestTo(signedIn())('GET', '/a', undefined, headers => told.push(headers.get('X-Partial')));
  expect(told).toEqual(['true']);
});

test('a refusal has its code and the words of the platform, where it says any', async () => {
  const request = requestTo(signedIn());
  for (const [status, code] of [
    [404, 'not_found'],
    [401, 'unauthenticated'],
    [418, 'internal'],
  ] as const) {
    answer = () => Response.json({ message: 'No.' }, { status });
    await expect(request('GET', '/a')).rejects.toMatchObject({ code, message: 'No.' });
    for (const body of ['<html>', '']) {
      answer = () => new Response(body, { status });
      await expect(request('GET', '/a')).rejects.toMatchObject({ code, message: `The platform answered ${status}.` });
    }
  }
});

test('a platform that is gone does not answer', async () => {
  using other = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
  const { port } = other;
  other.stop(true);
  const target = signedInPlatform({ url: `http://127.0.0.1:${port}`, apiKey: '', domain: 'h' });
  await expect(requestTo(target)('GET', '/a')).rejects.toMatchObject({
    ...{ code: 'unavailable', message: expect.stringContaining('does not answer') },
  });
});

test('a list is read to its end, and its question is the same for each page', async () => {
  const pages: Record<string, [number[], string | null]> = {
    '/list': [[1, 2], 'a&b'],
    '/list?nextToken=a%26b': [[], 'c'],
    '/list?nextToken=c': [[3], null],
    '/list?state=on': [[4], 'd'],
    '/list?state=on&nextToken=d': [[5], null],
  };
  answer = path => {
    const [items, next] = pages[path] ?? [[], null];
    return Response.json(items, { headers: next === null ? {} : { 'X-Next-Token': next } });
  };
  const list = listOf(signedIn());
  expect(await list('/list')).toEqual([1, 2, 3]);
  expect(await list('/list?state=on')).toEqual([4, 5]);
  expect(lines()).toEqual(Object.keys(pages).map(path => `GET ${path}`));
});

test('commands on the machine are for the first team, which is asked for once, as the operator', async () => {
  begin([
    { teamID: 't0', slug: 'other' },
    { teamID: 't1', slug: firstTeam.slug },
  ]);
  const request = requestTo(ownPlatform(settings));
  await request('GET', '/a');
  await request('GET', '/b');
  const own = { key: 'operator', body: '' };
  expect(asked).toEqual([
    { line: 'GET /admin/teams', team: null, ...own },
    { line: 'GET /a', team: 't1', ...own },
    { line: 'GET /b', team: 't1', ...own },
  ]);
  await operatorRequest(settings)('GET', '/c');
  expect(asked.at(-1)).toEqual({ line: 'GET /c', team: null, ...own });
});

test('no first team, no platform that runs and no token of the operator are said', async () => {
  const own = () => requestTo(ownPlatform(settings))('GET', '/a');
  const noPlatform = { code: 'unavailable', message: expect.stringContaining(`No platform runs on ${dataDir}`) };
  await expect(own()).rejects.toMatchObject(noPlatform);
  begin([{ teamID: 't0', slug: 'other' }]);
  await expect(own()).rejects.toMatchObject({ code: 'not_found' });
  // It runs all the same.
  rmSync(join(dataDir, 'admin-token'));
  const noToken = {
    code: 'unavailable',
    message: expect.stringContaining('admin-token is missing: put it back, or start the platform again'),
  };
  await expect(own()).rejects.toMatchObject(noToken);
  await expect(operatorRequest(settings)('GET', '/a')).rejects.toMatchObject(noToken);
});

const stream = (text: string) => new Response(text, { headers: { 'Content-Type': 'text/event-stream' } });

test('a stream that is cut goes on behind its last event, over a restart, until it says its end', async () => {
  const answers = [
    () => stream('event: ready\ndata: {}\n\nid: 1\ndata: {"n":1}\n\n'),
    () => new Response('', { status: 503 }),
    () => stream('id: 2\ndata: {"n":2}\n\nevent: end\ndata: {}\n\n'),
  ];
  answer = () => answers.shift()?.() ?? new Response('', { status: 500 });
  expect(await Array.fromAsync(followAt(signedIn())('/log', { level: 'info' }))).toEqual([{ n: 1 }, { n: 2 }]);
  expect(lines()).toEqual(['GET /log?level=info', 'GET /log?level=info&after=1', 'GET /log?level=info&after=1']);
});

test('a stream that never began, or that is refused later, fails', async () => {
  answer = () => new Response('', { status: 503 });
  await expect(Array.fromAsync(followAt(signedIn())('/log', {}))).rejects.toMatchObject({ code: 'unavailable' });
  const answers = [() => stream('data: 1\n\n'), () => new Response('', { status: 404 })];
  answer = () => answers.shift()?.() ?? new Response();
  await expect(Array.fromAsync(followAt(signedIn())('/log', {}))).rejects.toMatchObject({ code: 'not_found' });
});

test('a server that is no Atoll is named by its URL, and not asked again', async () => {
  const no = {
    code: 'unavailable',
    message: expect.stringContaining(`What answers at ${platform.url.origin} is no Atoll`),
  };
  for (const body of ['<html>sign in</html>', '{"a":'])
    for (const path of ['list', 'follow', 'request'] as const) {
      answer = () => new Response(body, { headers: { 'Content-Type': 'text/html' } });
      const asking = {
        list: () => listOf(signedIn())('/a'),
        follow: () => followAt(signedIn())('/a', {}).next(),
        request: () => requestTo(signedIn())('GET', '/a'),
      }[path];
      await expect(asking()).rejects.toMatchObject(no);
    }
  answer = () => Response.json({ not: 'a list' });
  await expect(listOf(signedIn())('/a')).rejects.toMatchObject(no);
});

test('an ID that is a way to another path is asked for nowhere', async () => {
  for (const id of ['.', '..'])
    await expect(requestTo(signedIn())('DELETE', `/sandboxes/${id}/x?y=/../z`)).rejects.toMatchObject({
      code: 'invalid',
      message: `"${id}" is neither an ID nor a name`,
    });
  expect(asked).toEqual([]);
  answer = () => Response.json({});
  await requestTo(signedIn())('GET', '/a?next=/../b');
});
