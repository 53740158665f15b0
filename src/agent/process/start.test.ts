import { afterAll, expect, test } from 'bun:test';
import { closeSync, ftruncateSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import type { Call } from '../connect/call.ts';
import { Outbox } from '../connect/outbox.ts';
import { openStateFile } from '../durable/state-file.ts';
import { createOutputBudget } from '../journal/budget.ts';
import { Journal } from '../journal/journal.ts';
import { openNative } from '../native.ts';
import type { Ending } from './end-status.ts';
import { watchOutOfMemory } from './out-of-memory.ts';
import type { ProcessHost } from './process-host.ts';
import { ProcessTable } from './process-table.ts';
import type { Spawner } from './spawner.ts';
import { start } from './start.ts';

const dir = mkdtempSync(join(tmpdir(), 'atoll-start-'));
const states: number[] = [];
/** Ends of all programs: each is written to its agent's state. */
const ends: Promise<unknown>[] = [];
afterAll(async () => {
  await Promise.all(ends);
  for (const fd of states) closeSync(fd);
  rmSync(dir, { recursive: true });
});

const call: Call = { username: 'root', timeoutMs: undefined, keepaliveMs: 60_000, wantsShortEntries: false };
const defaults = { envVars: { A: 'sandbox', B: 'sandbox' }, defaultUser: 'root', defaultWorkdir: '', logOutput: true };

/** An agent whose process 1 is the test: a program has written `says` and runs until it is told to end. */
function agentOf(settings: Partial<typeof defaults> = {}, says = '') {
  const fd = openSync(join(mkdtempSync(join(dir, 'state-')), 'state'), 'wx+');
  ftruncateSync(fd, 32 << 20);
  states.push(fd);
  const asked: Parameters<Spawner['start']>[0][] = [];
  const signals: [number, number][] = [];
  const ended = Promise.withResolvers<Ending>();
  const spawner = {
    async start(program: Parameters<Spawner['start']>[0], descriptors: number[]) {
      asked.push(program);
      if (says) writeSync(descriptors[0] ?? -1, says);
      return { pid: 4321, ended: ended.promise };
    },
    signal(pid: number, number: number) {
      signals.push([pid, number]);
      ended.resolve({ signal: number });
    },
  };
  const agent = {
    ...{ spawner, native: openNative(), state: openStateFile(fd), processes: new ProcessTable() },
    ...{ outOfMemory: watchOutOfMemory(), journal: new Journal('epoch'), outputBudget: createOutputBudget() },
    settings: () => ({ ...defaults, ...settings }),
  } as unknown as ProcessHost;
  const { add } = agent.processes;
  agent.processes.add = (process, onEnd) => (ends.push(process.ended), add.call(agent.processes, process, onEnd));
  const outbox = new Outbox();
  const begin = (message: object, given: Partial<Call> = {}) =>
    start(agent, message as never, { ...call, ...given }, outbox);
  return { ...{ agent, asked, signals, outbox, begin }, end: (ending: Ending) => ended.resolve(ending) };
}

/** Everything that a stream says, including its end. */
async function heard(outbox: Outbox): Promise<string[]> {
  const bytes = Buffer.from(await new Response(outbox.stream()).arrayBuffer());
  const texts: string[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = at + 5 + bytes.readUInt32BE(at + 1);
    texts.push(bytes.toString('utf8', at + 5, end));
    at = end;
  }
  return texts;
}

test('a program is started as it was asked for, and its caller hears all of it', async () => {
  const { asked, agent, begin, end, outbox } = agentOf({}, 'hello');
  await begin({ process: { cmd: 'ls', args: ['-l', 'a'], cwd: '/usr', envs: { B: 'own' } }, tag: 'named' });
  expect(asked).toMatchObject([
    { argv: ['ls', '-l', 'a'], uid: 0, gid: 0, cwd: '/usr', environment: { A: 'sandbox', B: 'own' } },
  ]);
  expect(agent.state.readProcesses()).toMatchObject([{ record: { pid: 4321, config: { cmd: 'ls' }, tag: 'named' } }]);
  await end({ exitCode: 3 });
  const [first, ...rest] = await heard(outbox);
  expect(JSON.parse(first ?? '')).toMatchObject({ event: { start: { pid: 4321 } } });
  expect(rest.join()).toContain(Buffer.from('hello').toString('base64'));
  expect(rest.join()).toContain('"exitCode":3');
  // The next agent does not look for ended programs.
  expect(agent.state.readProcesses()).toEqual([]);
});

test('a program starts where it is asked to, else where the sandbox says, else at its user’s home', async () => {
  const cwdOf = async (cwd: string | undefined, settings: Partial<typeof defaults> = {}, username = 'root') => {
    const { asked, begin, end } = agentOf(settings);
    await begin({ process: { cmd: 'ls', ...(cwd !== undefined && { cwd }) } }, { username });
    await end({ exitCode: 0 });
    return asked[0]?.cwd;
  };
  expect(await cwdOf('/usr')).toBe('/usr');
  expect(await cwdOf('/usr', { defaultWorkdir: '/var' })).toBe('/usr');
  expect(await cwdOf(undefined, { defaultWorkdir: '/var' })).toBe('/var');
  expect(await cwdOf(undefined)).toBe('/root');
  // Debian gives this user a home that does not exist.
  expect(await cwdOf(undefined, {}, 'nobody')).toBe('/');
  await expect(cwdOf('/no/such', {}, 'nobody')).rejects.toMatchObject({ code: 'invalid' });
  const file = join(dir, 'file');
  writeFileSync(file, '');
  await expect(cwdOf('/no/such')).rejects.toThrow("cwd '/no/such' does not exist");
  await expect(cwdOf(file)).rejects.toThrow(`cwd '${file}' is not a directory`);
  await expect(cwdOf(undefined, { defaultWorkdir: '/no/such' })).rejects.toMatchObject({ code: 'invalid' });
});

test('the user is the call’s, else the sandbox’s; one without a home starts at the root', async () => {
  const { asked, begin, end } = agentOf({ defaultUser: '54321:54322' });
  await begin({ process: { cmd: 'ls' } }, { username: '' });
  expect(asked).toMatchObject([{ uid: 54_321, gid: 54_322, cwd: '/' }]);
  await end({ exitCode: 0 });
  const other = agentOf();
  await expect(other.begin({ process: { cmd: 'ls' } }, { username: 'nobody-of-this-name' })).rejects.toMatchObject({
    code: 'unauthenticated',
  });
  expect(other.asked).toEqual([]);
});

test('a program that runs at the deadline of its call is killed, and the caller is told', async () => {
  const { begin, outbox, signals } = agentOf();
  await begin({ process: { cmd: 'sleep' } }, { timeoutMs: 5 });
  const said = (await heard(outbox)).at(-1) ?? '';
  expect(JSON.parse(said)).toEqual({
    error: {
      code: 'deadline_exceeded',
      message: 'the process was killed: it did not end before the timeout of the call',
    },
  });
  expect(signals).toEqual([[4321, 9]]);
});

test('a caller of a program that says nothing is kept alive', async () => {
  const { begin, outbox, end } = agentOf();
  await begin({ process: { cmd: 'sleep' } }, { keepaliveMs: 1 });
  const all = heard(outbox);
  const { add } = outbox;
  const kept = Promise.withResolvers<Uint8Array>();
  outbox.add = envelope => (kept.resolve(envelope), add.call(outbox, envelope));
  expect(Buffer.from(await kept.promise).toString('latin1', 5)).toBe('{"event":{"keepalive":{}}}');
  await end({ exitCode: 0 });
  expect((await all).length).toBeGreaterThan(2);
});

test('a program goes on without its caller', async () => {
  const { begin, outbox, agent, signals, end } = agentOf();
  await begin({ process: { cmd: 'sleep' } });
  outbox.abandon();
  expect([agent.state.readProcesses().length, signals]).toEqual([1, []]);
  await end({ exitCode: 0 });
});

test('a program that is too long to be recorded is found by the next agent all the same', async () => {
  const { begin, agent, end } = agentOf();
  await begin({ process: { cmd: 'ls', args: ['x'.repeat(1 << 20)], envs: { SECRET: 'y' } } });
  expect(agent.state.readProcesses()).toMatchObject([
    { record: { pid: 4321, config: { cmd: 'ls', args: ['…'], envs: {} } } },
  ]);
  await end({ exitCode: 0 });
});

test('a program that can’t be started leaves nothing', async () => {
  const { begin, agent } = agentOf();
  agent.spawner.start = () => Promise.reject(new AtollError('rate_limited', 'no more processes'));
  await expect(begin({ process: { cmd: 'ls' } })).rejects.toMatchObject({ code: 'rate_limited' });
  expect(agent.state.readProcesses()).toEqual([]);
});
