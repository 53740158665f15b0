import { afterAll, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Terminal } from '../terminal/command.ts';
import { templateBuildCommands } from './build.ts';

const dir = mkdtempSync(join(tmpdir(), 'atoll-template-'));
afterAll(() => rmSync(dir, { recursive: true }));

/** A folder with this template.json, and these files. */
function folderOf(definition: object, files: Record<string, string> = {}): string {
  const folder = join(mkdtempSync(join(dir, 'in-')), 'my-folder');
  mkdirSync(folder);
  writeFileSync(join(folder, 'template.json'), JSON.stringify(definition));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

type Request = [method: string, path: string, body: unknown];
type Installation = {
  build?: object;
  present?: boolean;
  uploadStatus?: number;
  builds?: { buildID: string }[];
  shipped?: string;
};

/** The commands, and an installation that answers them. */
function commandsFor({ build, present = false, uploadStatus = 201, builds, shipped }: Installation = {}) {
  const requests: Request[] = [];
  const uploads: Buffer[] = [];
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      uploads.push(Buffer.from(await request.arrayBuffer()));
      return new Response(request.method, { status: uploadStatus });
    },
  });
  const answer = (method: string, path: string) => {
    if (path === '/v3/templates') return { templateID: 't1', buildID: 'b1' };
    if (path.includes('/files/')) return { present, url: `http://127.0.0.1:${server.port}/upload` };
    if (path.endsWith('/status?limit=0')) return { status: 'ready', ...build };
    return method === 'GET' ? { templateID: 't1', builds: builds ?? [] } : undefined;
  };
  const request = async (method: string, path: string, body?: unknown) => {
    requests.push([method, path, body]);
    return answer(method, path);
  };
  const followed: string[] = [];
  async function* follow(path: string) {
    followed.push(path);
    yield { message: 'step 1' };
    yield { message: 'step 2' };
  }
  const commands = templateBuildCommands(request as never, follow as never, name =>
    name === 'shipped' ? shipped : undefined,
  );
  const said = { out: '', err: '' };
  const terminal: Terminal = {
    out: text => void (said.out += String(text)),
    err: text => void (said.err += text),
    isInteractive: false,
  };
  const run = async (name: string, ...args: string[]) => {
    try {
      return await commands.find(command => command.name === name)?.run(args, terminal);
    } finally {
      await server.stop(true);
    }
  };
  return { run, requests, followed, uploads, said };
}

const definition = { fromImage: 'debian', cpuCount: 2, memoryMB: 512, startCmd: 'serve', readyCmd: 'ready' };

test('a folder is registered, built and followed to its end', async () => {
  const { run, requests, followed, uploads, said } = commandsFor();
  expect(await run('template build', folderOf({ ...definition, name: 'mine' }))).toBe(0);
  expect(requests).toMatchObject([
    ['POST', '/v3/templates', { name: 'mine', cpuCount: 2, memoryMB: 512 }],
    ['POST', '/v2/templates/t1/builds/b1', { fromImage: 'debian', startCmd: 'serve', readyCmd: 'ready', force: false }],
    ['GET', '/templates/t1/builds/b1/status?limit=0', undefined],
  ]);
  expect([followed, uploads]).toEqual([['/templates/t1/builds/b1/logs/stream'], []]);
  expect(said).toEqual({ out: 'mine\n', err: 'step 1\nstep 2\n' });
});

test('a template has the name of its folder where it says none', async () => {
  const { run, said } = commandsFor();
  expect(await run('template build', folderOf(definition))).toBe(0);
  expect(said.out).toBe('my-folder\n');
});

test('options say who may use it, what is kept, and how it is told', async () => {
  const { run, requests, said } = commandsFor({ build: { buildID: 'b1' } });
  expect(await run('template build', folderOf(definition), '--public', '--no-cache', '--json')).toBe(0);
  expect(requests[1]).toMatchObject(['POST', '/v2/templates/t1/builds/b1', { force: true }]);
  expect(requests).toContainEqual(['PATCH', '/templates/t1', { public: true }]);
  expect(JSON.parse(said.out)).toEqual({ status: 'ready', buildID: 'b1' });
});

test('a build that fails says where and why, and is not let out', async () => {
  const failed = async (reason: object | undefined, ...options: string[]) => {
    const { run, requests, said } = commandsFor({ build: { status: 'error', reason } });
    const code = await run('template build', folderOf(definition), '--public', ...options);
    expect([code, requests.some(([method]) => method === 'PATCH')]).toEqual([1, false]);
    return said;
  };
  const { out, err } = await failed({ step: '3', message: 'no' });
  expect([out, err]).toEqual(['', 'step 1\nstep 2\nThe build failed at step 3: no\n']);
  expect((await failed({ step: 'base', message: 'no' })).err).toContain('The build failed (base): no\n');
  expect((await failed({ message: 'no' })).err).toContain('The build failed: no\n');
  expect((await failed(undefined)).err).toContain('The build failed: no reason was given\n');
  expect(JSON.parse((await failed({ message: 'no' }, '--json')).out)).toMatchObject({ status: 'error' });
});

const withFiles = {
  ...{ ...definition, files: ['a.txt'] },
  steps: [
    { type: 'COPY', args: ['a.txt', '/'] },
    { type: 'RUN', args: ['ls'] },
  ],
};
const files = { 'a.txt': 'content' };

test('files are sent once, and the build is told which', async () => {
  const first = commandsFor();
  await first.run('template build', folderOf(withFiles, files));
  const [, [method, path] = [], [, , start] = []] = first.requests;
  const hash = new Bun.CryptoHasher('sha256').update(first.uploads[0] ?? '').digest('hex');
  expect([method, path]).toEqual(['GET', `/templates/t1/files/${hash}`]);
  expect(first.uploads[0]?.toString('latin1')).toContain('content');
  expect((start as { steps: unknown }).steps).toEqual([
    { type: 'COPY', args: ['a.txt', '/'], filesHash: hash },
    { type: 'RUN', args: ['ls'] },
  ]);
  const again = commandsFor({ present: true });
  expect(await again.run('template build', folderOf(withFiles, files))).toBe(0);
  expect([again.uploads, again.requests[1]?.[1]]).toEqual([[], `/templates/t1/files/${hash}`]);
});

test('files that are not taken end the build before it is started', async () => {
  const { run, requests } = commandsFor({ uploadStatus: 507 });
  await expect(run('template build', folderOf(withFiles, files))).rejects.toThrow(
    'The files could not be uploaded: 507 PUT',
  );
  expect(requests.map(([method]) => method)).toEqual(['POST', 'GET']);
});

test('a template that comes with Atoll is for every team', async () => {
  const shipped = folderOf({ ...definition, name: 'shipped' });
  const { run, requests, said } = commandsFor({ shipped });
  expect(await run('template add', 'shipped', '--no-cache')).toBe(0);
  expect(requests[1]).toMatchObject(['POST', '/v2/templates/t1/builds/b1', { force: true }]);
  expect([requests.at(-1), said.out]).toEqual([['PATCH', '/templates/t1', { public: true }], 'shipped\n']);
  await expect(commandsFor({ shipped }).run('template add', 'other')).rejects.toMatchObject({ code: 'not_found' });
});

test('what only the start of the platform makes is not built', async () => {
  const { run, requests } = commandsFor();
  const folder = folderOf({ fromMachine: true });
  await expect(run('template build', folder)).rejects.toMatchObject({ code: 'invalid' });
  expect(requests).toEqual([]);
});

test('the log of the newest build is shown as text or as it is', async () => {
  const builds = [{ buildID: 'b9' }, { buildID: 'b1' }];
  const text = commandsFor({ builds });
  expect(await text.run('template log', 'my/template')).toBe(0);
  expect([text.requests[0]?.[1], text.followed, text.said.out]).toEqual([
    '/templates/my%2Ftemplate',
    ['/templates/t1/builds/b9/logs/stream'],
    'step 1\nstep 2\n',
  ]);
  const json = commandsFor({ builds, build: { status: 'error' } });
  expect(await json.run('template log', 't1', '--json')).toBe(1);
  expect(json.said.out).toBe('{"message":"step 1"}\n{"message":"step 2"}\n');
  await expect(commandsFor().run('template log', 't1')).rejects.toThrow('No build of t1 was begun yet.');
});
