import { beforeAll, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { sharedAgent } from './support/shared-agent.ts';
import { addUser } from './support/users.ts';

const agent = sharedAgent({ init: { defaultUser: 'someone' } });
beforeAll(async () => {
  addUser(agent, 'someone', 4321);
  mkdirSync(agent.path('/tmp/compose'), { recursive: true });
});

async function compose(body: unknown): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(`${agent.url}/files/compose`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

function make(name: string, content: string): string {
  writeFileSync(agent.path(`/tmp/compose/${name}`), content);
  return `/tmp/compose/${name}`;
}

test('files become one, in order, and are gone', async () => {
  const sources = [make('1', 'one '), make('2', ''), make('3', 'three'.repeat(500_000))];
  expect(await compose({ source_paths: sources, destination: 'new/whole' })).toEqual({
    status: 200,
    body: { path: '/home/someone/new/whole', name: 'whole', type: 'file' },
  });
  expect(readFileSync(agent.path('/home/someone/new/whole'), 'utf8')).toBe(`one ${'three'.repeat(500_000)}`);
  for (const source of sources) expect(existsSync(agent.path(source))).toBe(false);
  const facts = statSync(agent.path('/home/someone/new/whole'));
  expect({ uid: facts.uid, mode: facts.mode & 0o777 }).toEqual({ uid: 4321, mode: 0o644 });
  expect(readdirSync(agent.path('/home/someone/new'))).toEqual(['whole']);
});

test('the name may have as many bytes as a name can have', async () => {
  const name = '長'.repeat(85);
  expect(await compose({ source_paths: [make('part', 'x')], destination: `/tmp/compose/${name}` })).toMatchObject({
    status: 200,
    body: { name },
  });
});

test('what was there is replaced in one step, for the user that is named', async () => {
  writeFileSync(agent.path('/tmp/compose/target'), 'former');
  const before = statSync(agent.path('/tmp/compose/target')).ino;
  expect(
    (await compose({ source_paths: [make('a', 'new')], destination: '/tmp/compose/target', username: 'root' })).status,
  ).toBe(200);
  const after = statSync(agent.path('/tmp/compose/target'));
  expect({
    text: readFileSync(agent.path('/tmp/compose/target'), 'utf8'),
    isNew: after.ino !== before,
    uid: after.uid,
  }).toEqual({ text: 'new', isNew: true, uid: 0 });
});

test('what can not be is refused, and harms nothing', async () => {
  const source = make('kept', 'kept');
  symlinkSync('kept', agent.path('/tmp/compose/link'));
  const refused: [unknown, number][] = [
    [{ source_paths: [], destination: '/tmp/compose/x' }, 400],
    [{ destination: '/tmp/compose/x' }, 400],
    [{ source_paths: [source] }, 400],
    [{ source_paths: [source], destination: '' }, 400],
    [{ source_paths: [source], destination: source }, 400],
    [{ source_paths: [source], destination: '/tmp/compose/../compose/kept' }, 400],
    [{ source_paths: ['/tmp/compose'], destination: '/tmp/compose/x' }, 400],
    [{ source_paths: ['/tmp/compose/link'], destination: '/tmp/compose/x' }, 400],
    [{ source_paths: [source, '/tmp/compose/none'], destination: '/tmp/compose/x' }, 404],
    [{ source_paths: [source], destination: '/tmp/compose' }, 400],
    [{ source_paths: [source], destination: '/tmp/compose/x', username: 'stranger' }, 401],
    [{ source_paths: 'text', destination: '/tmp/compose/x' }, 400],
    ['text', 400],
  ];
  for (const [body, status] of refused) expect(await compose(body)).toMatchObject({ status, body: { code: status } });
  expect(readFileSync(agent.path(source), 'utf8')).toBe('kept');
  expect(existsSync(agent.path('/tmp/compose/x'))).toBe(false);
  expect(readdirSync(agent.path('/tmp/compose')).filter(name => name.startsWith('.'))).toEqual([]);
});
