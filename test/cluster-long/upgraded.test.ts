import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, setDefaultTimeout } from 'bun:test';
import { Sandbox } from 'e2b';
import { postgresPrograms, withoutPostgres } from '../api/postgres.ts';
import { keepLogs } from '../cluster/support/clients.ts';
import { allReady, type Cluster, connectionTo, layersEverywhere, startCluster } from '../cluster/support/cluster.ts';
import { atRest } from '../cluster/support/invariants.ts';
import { startWriter, written } from '../cluster/support/writer.ts';
import { testUnless } from '../support/skip.ts';

// A cluster moves to the next release and back, process by process and machine by machine, while clients work. The next
// release is this one with another number and another build of the agent: this tests that two of them work side by
// side, and the way there.

setDefaultTimeout(30 * 60_000);
const programs = postgresPrograms();
const clusterTest = testUnless(withoutPostgres());
const root = join(import.meta.dir, '../..');
const folder = mkdtempSync(join(tmpdir(), 'atoll-upgraded-'));
const store = join(folder, 'store');
const next = join(folder, 'next');
/** How long a client retries while it gets 503 or no answer. */
const patienceMs = 60_000;

let cluster: Cluster;

beforeAll(async () => {
  if (!programs) return;
  for (const part of ['bin', 'src', 'package.json', 'package-lock.json', 'tsconfig.json', 'scripts'])
    cpSync(join(root, part), join(next, part), { recursive: true });
  for (const part of ['node_modules', 'templates', 'docs', 'ops']) symlinkSync(join(root, part), join(next, part));
  mkdirSync(join(next, 'dist'));
  for (const part of readdirSync(join(root, 'dist')).filter(name => name !== 'agent'))
    symlinkSync(join(root, 'dist', part), join(next, 'dist', part));
  cpSync(join(root, 'dist/agent'), join(next, 'dist/agent'), { recursive: true });
  writeFileSync(join(next, 'dist/agent/release'), '0.2.0');
  renumber('src/base/version.ts');
  renumber('package.json');
  cluster = await startCluster(
    programs,
    { controls: 2, nodes: 3 },
    { ATOLL_ISOLATION_SECONDS: '600', ATOLL_CPU_OVERCOMMIT: '16' },
    async () => ({ ATOLL_STORE: store }),
  );
});
afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** Gives a file of the next release its number. */
function renumber(file: string): void {
  const path = join(next, file);
  const text = readFileSync(path, 'utf8');
  const changed = text.replace(/(['"])0\.1\.0\1/, '$10.2.0$1');
  if (changed === text) throw new Error(`${file} does not say which release it is`);
  writeFileSync(path, changed);
}

/** Asks any control process, and another one if that does not answer or says 503. */
async function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  for (const deadline = performance.now() + patienceMs; ; await Bun.sleep(100))
    for (const control of cluster.controls) {
      const answer = await control.call(method, path, body, headers).catch(() => undefined);
      if (answer && answer.status !== 503) return answer;
      if (performance.now() > deadline) throw new Error(`${method} ${path}: ${await answer?.text()}`);
    }
}

/** Makes sandboxes, reaches them and kills them, until told to stop. Answers how many, and what was refused. */
function client(): () => Promise<{ done: number; refused: string[] }> {
  let isOver = false;
  const refused: string[] = [];
  let done = 0;
  const expected = async (status: number, ...asked: Parameters<typeof ask>) => {
    const answer = await ask(...asked);
    if (answer.status !== status) refused.push(`${asked[0]} ${asked[1]}: ${answer.status} ${await answer.text()}`);
    return answer;
  };
  const working = (async () => {
    while (!isOver) {
      const key = { 'Idempotency-Key': crypto.randomUUID() };
      const made = await expected(201, 'POST', '/sandboxes', { templateID: 'base', timeout: 3600 }, key);
      if (!made.ok) continue;
      const { sandboxID } = (await made.json()) as { sandboxID: string };
      const at = { 'E2b-Sandbox-Id': sandboxID, 'E2b-Sandbox-Port': '49983' };
      await expected(204, 'GET', '/health', undefined, at);
      await expected(204, 'DELETE', `/sandboxes/${sandboxID}`);
      done++;
    }
  })();
  return async () => {
    isOver = true;
    await working;
    return { done, refused };
  };
}

/** Brings all processes and machines to a release. */
async function goTo(program: string): Promise<void> {
  for (const control of cluster.controls) {
    await control.end();
    await control.restart(program);
  }
  const script = join(folder, 'replace');
  writeFileSync(
    script,
    '#!/bin/sh\ntouch "$0.$1.asked"\nuntil [ -e "$0.$1.done" ]; do sleep 0.1; done\nrm "$0.$1".*\n',
    { mode: 0o700 },
  );
  let isOver = false;
  const replacing = (async () => {
    for (; !isOver; await Bun.sleep(100))
      for (const node of cluster.nodes) {
        const file = `${script}.${node.nodeId}`;
        if (!existsSync(`${file}.asked`) || existsSync(`${file}.done`)) continue;
        await node.end();
        await node.restart(program);
        writeFileSync(`${file}.done`, '');
      }
  })();
  const upgraded = await cluster.atollOf(program, 0, 'cluster', 'upgrade', '--run', script);
  isOver = true;
  await replacing;
  expect(upgraded).toMatchObject({ code: 0 });
}

const releases = async () => {
  const nodes = (await (await cluster.admin(0, 'GET', '/nodes')).json()) as { version: string }[];
  return nodes.map(({ version }) => version);
};

clusterTest('a cluster goes to the next release and back under its clients, and nothing is lost', async () => {
  await layersEverywhere(cluster);
  const made = await Promise.all(
    [0, 1, 0].map(control => Sandbox.create('base', { ...connectionTo(cluster, control), timeoutMs: 3_600_000 })),
  );
  let before = await Promise.all(made.map(sandbox => startWriter(sandbox)));
  const current = join(root, 'bin/atoll');
  for (const [program, release] of [
    [join(next, 'bin/atoll'), '0.2.0'],
    [current, '0.1.0'],
  ] as const) {
    const clients = [client(), client()];
    await goTo(program);
    await allReady(cluster);
    expect(await releases()).toEqual([release, release, release]);
    for (const over of clients) {
      const { done, refused } = await over();
      process.stderr.write(`to ${release}: a client made and killed ${done} sandboxes\n`);
      if (refused.length > 0) keepLogs(cluster);
      expect(refused).toEqual([]);
      expect(done).toBeGreaterThan(3);
    }
    before = await Promise.all(
      made.map(async ({ sandboxId }, index) => {
        const known = before[index] ?? { pid: '', count: 0 };
        const now = await written(await Sandbox.connect(sandboxId, connectionTo(cluster, index % 2)), known.count);
        expect(now.pid).toBe(known.pid);
        return now;
      }),
    );
  }
  await atRest(cluster, store);
  for (const { sandboxId } of made) expect(await Sandbox.kill(sandboxId, connectionTo(cluster, 0))).toBe(true);
  await atRest(cluster, store);
});
