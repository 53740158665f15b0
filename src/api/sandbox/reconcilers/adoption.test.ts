import { afterAll, beforeEach, expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import { createLog } from '../../../base/telemetry/log.ts';
import type { ExecutionRef, NodeProtocol, PausedSandbox, SetAsideSandbox } from '../../../protocol/node.ts';
import { beginBlob, recordTakenBack } from '../../blob/store/blobs.ts';
import { openStore } from '../../database/database.ts';
import { createIdentity } from '../../identity/rules/identity.ts';
import type { Nodes } from '../../placement/nodes.ts';
import { createTeam } from '../../team/rules/provision-team.ts';
import { SandboxDirectory } from '../directory/directory.ts';
import { defaultOptions, type SandboxRecord } from '../record.ts';
import { BusyExecutions } from '../rules/busy.ts';
import { insertSandbox } from '../store/create.ts';
import { recordPastSandbox } from '../store/past.ts';
import { findSandboxOfAnyTeam } from '../store/read.ts';
import { recordIncident, recordMemoryLost, reconcileNodes } from './adoption.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());
beforeEach(async () => {
  for (const table of ['sandboxes', 'past_sandboxes', 'blobs', 'database_timeline', 'events'] as const)
    await db.deleteFrom(table).execute();
});
const nowUs = 1e15;
const clock = () => nowUs;
const { teamId } = await createTeam({ db, clock }, { name: 'T', slug: 't' });
const seed = new Uint8Array(32).fill(1);
const identity = createIdentity({ seed, issuer: 'https://api.example.org', domain: 'example.org', clock });

/** The machines `a` and `b`, what the test puts on them, and what they are told; fails at `failing`. */
function scene() {
  const told: string[] = [];
  const logged: string[] = [];
  const it = { failing: '', away: null as string[] | null, onList: async () => {} };
  const machine = (name: string) => {
    const has = { running: [] as string[], paused: [] as PausedSandbox[], setAside: [] as SetAsideSandbox[] };
    const tell = async (what: string, { executionId }: ExecutionRef, why = '') => {
      told.push(`${name}: ${what} ${executionId}${why}`);
      if (it.failing === what) throw new AtollError('unavailable', `${what} failed`);
    };
    const protocol = {
      async list() {
        const running = has.running.map(refOf);
        await it.onList();
        if (it.failing === `list of ${name}`) throw new AtollError('unavailable', 'it does not answer');
        return running;
      },
      listPaused: async () => has.paused,
      listSetAside: async () => has.setAside,
      kill: (target: ExecutionRef) => tell('kill', target),
      takeBack: (target: ExecutionRef) => tell('take back', target),
      setAside: (target: ExecutionRef, reason: string) => tell('set aside', target, `: ${reason}`),
      updateNetwork: (target: ExecutionRef) => tell('rules of', target),
    } as unknown as NodeProtocol;
    return Object.assign(has, { protocol });
  };
  const [a, b] = [machine('a'), machine('b')];
  const list = [
    { nodeId: 'a', protocol: a.protocol },
    { nodeId: 'b', protocol: b.protocol },
  ];
  const away = () => (it.away ?? []).map(nodeId => ({ nodeId, isConnecting: false, sinceUs: 0, info: null }));
  const nodes = { list: () => list, get: (nodeId: string) => (nodeId === 'a' ? a : b).protocol, away } satisfies Nodes;
  const directory = new SandboxDirectory(() => ({ accessToken: null, trafficToken: null }));
  const log = createLog('info', line => logged.push(line));
  const deps = { busy: new BusyExecutions('here'), clock, db, directory, identity, log, nodes, seed };
  return { a, b, told, logged, it, deps, directory, reconcile: (isFirst = false) => reconcileNodes(deps, isFirst) };
}

/** An execution is named after its sandbox: `s`, or an earlier one of it: `s/old`. */
const refOf = (executionId: string): ExecutionRef => ({ sandboxId: executionId.split('/')[0] ?? '', executionId });
const pausedAs = (executionId: string, agentUnresponsive = false): PausedSandbox => ({
  ...{ ...refOf(executionId), kept: 'memory', pausedAtMs: 1 },
  ...(agentUnresponsive && { agentUnresponsive }),
});
const asideAs = (executionId: string) =>
  ({ ...refOf(executionId), known: { executionId } }) as unknown as SetAsideSandbox;

/** The row of a running sandbox on `a`. */
async function row(sandboxId: string, change: Partial<SandboxRecord> = {}): Promise<SandboxRecord> {
  const sandbox: SandboxRecord = {
    ...{ ...defaultOptions, sandboxId, executionId: sandboxId, teamId, nodeId: 'a', state: 'running', templateId: 't' },
    ...{ buildId: 'b', alias: null, agentVersion: '1', cpuCount: 1, memoryMiB: 1, diskMiB: 1, createdAtUs: 1 },
    ...{ startedAtUs: 1, endAtUs: nowUs + 1, timeoutSeconds: 60, secure: true, volumeMounts: [], kept: null },
    ...{ agentUnresponsive: false, durability: null, nextExecutionId: null, nextNodeId: null, replicaId: null },
    ...change,
  };
  expect(await insertSandbox(db, sandbox, { concurrentSandboxes: 999, sandboxes: 999 })).toBe('inserted');
  return sandbox;
}
const rowOf = (sandboxId: string) => findSandboxOfAnyTeam(db, sandboxId);
const stateOf = async (sandboxId: string) => (await rowOf(sandboxId))?.state;
const paused = { state: 'paused', kept: 'memory', durability: 'node' } as const;
/** The database went over to another server a moment ago. */
const suspect = () =>
  db.insertInto('database_timeline').values({ place: 1, system_id: 's', timeline: 2, changed_at_us: nowUs }).execute();
const aside = (executionId: string, why = 'the database did not know it') => `a: set aside ${executionId}: ${why}`;

test('a sandbox that no machine has any more is forgotten', async () => {
  const { reconcile, directory, logged, told, it } = scene();
  // Its own machine's answer is enough.
  it.away = ['c'];
  directory.apply(await row('running'));
  await row('paused', paused);
  await reconcile();
  expect([await stateOf('running'), await stateOf('paused'), directory.size]).toEqual([undefined, undefined, 0]);
  expect(logged).toHaveLength(2);
  expect(logged[0]).toContain('a sandbox is gone from its node');
  expect(told).toEqual([]);
});

test('a sandbox that is in the store, set aside, in transition or elsewhere is not looked for', async () => {
  const { reconcile, a, b, logged } = scene();
  await row('stored', { ...paused, durability: 'cluster' });
  await row('aside');
  await row('starting', { state: 'starting' });
  await row('moving', { state: 'moving', nextNodeId: 'b' });
  await row('other', { nodeId: 'b' });
  a.setAside.push(asideAs('aside/old'));
  b.running.push('other');
  await reconcile();
  for (const id of ['stored', 'aside', 'starting', 'moving', 'other']) expect(await stateOf(id)).toBeDefined();
  expect(logged).toEqual([]);
});

test('a sandbox that changed while its machine was asked is not forgotten', async () => {
  const { reconcile, it } = scene();
  for (const id of ['paused since', 'resumed since']) await row(id);
  it.onList = async () => {
    await db.updateTable('sandboxes').set({ state: 'pausing' }).where('sandbox_id', '=', 'paused since').execute();
    const set = { execution_id: 'resumed since/next' };
    await db.updateTable('sandboxes').set(set).where('sandbox_id', '=', 'resumed since').execute();
  };
  await reconcile();
  expect([await stateOf('paused since'), await stateOf('resumed since')]).toEqual(['pausing', 'running']);
});

test('present sandboxes are adopted, however many, and known ones stay as they are', async () => {
  const { reconcile, a, directory, told } = scene();
  const ids = Array.from({ length: 101 }, (_, index) => `r${index}`);
  for (const id of ids) await row(id);
  a.running.push(...ids, 'starting');
  await row('starting', { state: 'starting' });
  await row('p', paused);
  a.paused.push(pausedAs('p'));
  // What is known is newer than the row that was read.
  directory.apply({ ...(await row('pausing')), state: 'pausing' });
  a.running.push('pausing');
  await reconcile();
  expect([directory.size, directory.find('r100')?.state, directory.find('p')?.state]).toEqual([
    103,
    'running',
    'paused',
  ]);
  expect([directory.find('starting'), directory.find('pausing')?.state]).toEqual([undefined, 'pausing']);
  expect(told).toEqual([]);
});

test('after a start each machine is told again what may leave its sandboxes', async () => {
  const { reconcile, a, told } = scene();
  await row('running');
  await row('other execution', { executionId: 'other execution/next', state: 'running', nextExecutionId: null });
  await row('p', paused);
  await row('pausing', { state: 'pausing' });
  a.running.push('running', 'pausing');
  a.paused.push(pausedAs('p'));
  await reconcile(true);
  expect(told).toEqual(['a: rules of running']);
});

test('a sandbox that the database does not know is set aside, and runs on if that fails', async () => {
  const { reconcile, a, told, it, logged } = scene();
  a.running.push('unknown', 'known/old', 'known', 'resumed/next');
  a.paused.push(pausedAs('unknown paused'));
  await row('known');
  await row('resumed', { ...paused, state: 'resuming', nextExecutionId: 'resumed/next' });
  await reconcile();
  expect(told.toSorted()).toEqual([aside('known/old'), aside('unknown'), aside('unknown paused')].toSorted());
  expect(logged).toEqual([]);
  it.failing = 'set aside';
  await reconcile();
  expect(logged).toHaveLength(3);
  expect(logged[0]).toContain('could not be set aside and runs on');
});

test('the rest of a pause in the store is removed where the sandbox went on elsewhere', async () => {
  const { reconcile, a, b, told, it, logged } = scene();
  const stored = async (name: string) => {
    const blob = { blobId: newUuid(), kind: 'pause', name, bytes: 1, sealedKey: null, facts: null } as const;
    await beginBlob(db, blob, { replicaId: 'here', nowUs: 1 });
  };
  for (const id of ['elsewhere', 'unstored', 'running']) {
    await row(id, { nodeId: 'b' });
    b.running.push(id);
  }
  const ended = { team_id: teamId, ended_at_us: 1 };
  await recordPastSandbox(db, { ...ended, sandbox_id: 'ended', node_id: 'b' });
  await recordPastSandbox(db, { ...ended, sandbox_id: 'ended here', node_id: 'a' });
  for (const id of ['elsewhere', 'running', 'ended', 'ended here', 'nowhere']) await stored(`${id}/old`);
  for (const id of ['elsewhere', 'unstored', 'ended', 'ended here', 'nowhere']) a.paused.push(pausedAs(`${id}/old`));
  a.running.push('running/old');
  const expected = [
    ...['elsewhere/old', 'ended/old'].map(execution => `a: kill ${execution}`),
    ...['ended here/old', 'nowhere/old', 'running/old', 'unstored/old'].map(execution => aside(execution)),
  ];
  await reconcile();
  expect(told.toSorted()).toEqual(expected.toSorted());
  expect(logged).toEqual([]);
  told.length = 0;
  it.failing = 'kill';
  await reconcile();
  expect(told.toSorted()).toEqual(expected.toSorted());
  expect(logged).toHaveLength(2);
  expect(logged[0]).toContain('is removed later');
});

test('a run taken back while its machine was given up is removed, wherever the sandbox is by then', async () => {
  const { reconcile, a, b, told } = scene();
  await row('here', { ...paused, durability: 'cluster' });
  await row('elsewhere', { nodeId: 'b' });
  b.running.push('elsewhere');
  await recordPastSandbox(db, { team_id: teamId, ended_at_us: 1, sandbox_id: 'ended', node_id: 'a' });
  for (const id of ['here', 'elsewhere', 'ended', 'runs']) await recordTakenBack(db, `${id}/next`, 1);
  for (const id of ['here', 'elsewhere', 'ended', 'other']) a.paused.push(pausedAs(`${id}/next`));
  // Its machine pauses everything before it gets work again: a running one is something else.
  a.running.push('runs/next');
  await reconcile();
  const expected = ['here', 'elsewhere', 'ended'].map(id => `a: kill ${id}/next`);
  expect(told.toSorted()).toEqual([...expected, aside('other/next'), aside('runs/next')].toSorted());
  expect(await stateOf('here')).toBe('paused');
});

test('a database that may lack changes only forgets sandboxes that no machine has as any execution', async () => {
  await suspect();
  const { reconcile, a, b, told } = scene();
  for (const id of ['gone', 'runs', 'sleeps', 'aside']) await row(id);
  b.running.push('runs/next');
  b.paused.push(pausedAs('sleeps/next'));
  b.setAside.push(asideAs('aside/next'));
  a.running.push('unknown');
  await reconcile();
  const states = await Promise.all(['gone', 'runs', 'sleeps', 'aside'].map(stateOf));
  expect(states).toEqual([undefined, 'running', 'running', 'running']);
  const why =
    'the database does not know it since it went over to another server, which may lack what was answered before';
  expect(told).toContain(aside('unknown', why));
});

test('while a machine can’t be asked, such a database forgets nothing', async () => {
  await suspect();
  const { reconcile, it } = scene();
  await row('gone');
  it.away = ['c'];
  await reconcile();
  expect(await stateOf('gone')).toBe('running');
  it.away = [];
  it.failing = 'list of b';
  await reconcile().catch(() => {}); // that of `b` itself
  expect(await stateOf('gone')).toBe('running');
  it.failing = '';
  await reconcile();
  expect(await stateOf('gone')).toBeUndefined();
});

test('a pause that nobody was told of is recorded', async () => {
  const { reconcile, a, deps, directory } = scene();
  const over = { endAtUs: nowUs };
  await row('told late');
  // Expiry ends sandboxes whose time is over, unless they are to be paused.
  await row('over', over);
  await row('over and kept', { ...over, autoPause: true });
  await row('pausing', { state: 'pausing' });
  await row('busy');
  a.paused.push(...['told late', 'over', 'over and kept', 'pausing', 'busy'].map(id => pausedAs(id)));
  await deps.busy.while('busy', () => reconcile());
  expect(await rowOf('told late')).toMatchObject({ state: 'paused', kept: 'memory', endAtUs: nowUs });
  expect(directory.find('told late')?.state).toBe('paused');
  const states = await Promise.all(['over', 'over and kept', 'pausing', 'busy'].map(stateOf));
  expect(states).toEqual(['running', 'paused', 'pausing', 'running']);
});

test('a paused sandbox has kept what its machine says', async () => {
  const { reconcile, a } = scene();
  await row('kept', { ...paused, kept: 'filesystem' });
  await row('silent', paused);
  await row('same', { ...paused, agentUnresponsive: true });
  a.paused.push(pausedAs('kept'), pausedAs('silent', true), pausedAs('same', true));
  await reconcile();
  expect(await rowOf('kept')).toMatchObject({ ...paused, agentUnresponsive: false });
  expect(await rowOf('silent')).toMatchObject({ ...paused, agentUnresponsive: true });
  expect(await rowOf('same')).toMatchObject({ ...paused, agentUnresponsive: true });
});

test('a sandbox that was set aside is taken back if the database knows this very execution', async () => {
  const { reconcile, a, told, it, logged } = scene();
  await row('runs');
  await row('sleeps', paused);
  await row('went on', { executionId: 'went on/next' });
  await row('elsewhere', { nodeId: 'b', state: 'pausing' });
  for (const id of ['runs', 'sleeps', 'went on', 'elsewhere', 'unknown']) a.setAside.push(asideAs(id));
  a.setAside.push({ ...asideAs('runs'), known: null });
  await reconcile();
  expect(told).toEqual(['a: take back runs', 'a: take back sleeps']);
  it.failing = 'take back';
  await reconcile();
  expect(logged.filter(line => line.includes('a sandbox stays set aside'))).toHaveLength(2);
});

test('a sandbox that has lost its memory is paused with its files, once no workflow works on it', async () => {
  const { a, deps, directory, logged } = scene();
  directory.apply(await row('lost'));
  directory.apply(await row('runs'));
  a.paused = [{ ...refOf('lost'), kept: 'filesystem', pausedAtMs: 1 }];
  const { promise: work, resolve: finish } = Promise.withResolvers<void>();
  const working = deps.busy.while('lost', () => work);
  const recorded = recordMemoryLost(deps, a.protocol, refOf('lost'));
  expect(await stateOf('lost')).toBe('running');
  finish();
  await Promise.all([working, recorded]);
  expect(await rowOf('lost')).toMatchObject({ state: 'paused', kept: 'filesystem' });
  // One that was killed, or runs again, meanwhile.
  await recordMemoryLost(deps, a.protocol, refOf('gone'));
  await recordMemoryLost(deps, a.protocol, refOf('runs'));
  expect([await stateOf('runs'), logged.length]).toEqual(['running', 3]);
});

test('an incident ends a sandbox, with its reason, and a failed disk is reported', async () => {
  const { deps, directory, logged } = scene();
  const events = async () => (await db.selectFrom('events').selectAll().execute()).map(event => JSON.stringify(event));
  const reasons = { out_of_memory: 'out_of_memory', init_exited: 'exited' } as const;
  for (const [reason, shown] of Object.entries(reasons)) {
    directory.apply(await row(reason));
    await recordIncident(deps, { ...refOf(reason), reason: reason as keyof typeof reasons });
    expect([await stateOf(reason), directory.size]).toEqual([undefined, 0]);
    expect((await events()).at(-1)).toContain(`"kill_reason\\":\\"${shown}`);
  }
  directory.apply(await row('disk'));
  await recordIncident(deps, { ...refOf('disk'), reason: 'disk_failed' });
  expect([await stateOf('disk'), directory.size]).toEqual(['running', 1]);
  expect((await events()).at(-1)).toContain('disk_failed');
  // A kill under way removes the row itself.
  await row('killed', { state: 'killing' });
  await recordIncident(deps, { ...refOf('killed'), reason: 'init_exited' });
  expect(await stateOf('killed')).toBe('killing');
  expect(logged).toHaveLength(4);
});
