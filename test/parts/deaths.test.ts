import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';
import { type PartName, partNames, partOf, partsOf } from './support/parts-of.ts';

// A process of the platform that dies or stands still is restarted alone: sandboxes run on, answers hold, and what
// could not be answered says so.

let platform: TestPlatform;
beforeAll(async () => {
  platform = await startPlatform({ ATOLL_POOL_SIZE: '2' });
}, 600_000);
afterAll(() => platform?.[Symbol.asyncDispose]());

type Sandbox = { sandboxID: string; envdAccessToken: string };

/** The platform's answers that a client may get while a part is restarting; 0: no connection, or one that was cut. */
const honest = [0, 500, 502, 503, 504];
const recoveryMs = 60_000;

async function create(): Promise<Sandbox> {
  const answer = await platform.api('POST', '/v2/sandboxes', { templateID: 'base', timeout: 3600 });
  if (answer.status !== 201) throw new Error(`create answered ${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as Sandbox;
}

const inside = ({ sandboxID, envdAccessToken }: Sandbox, path: string, init: RequestInit = {}) =>
  fetch(`${platform.ready.url}${path}`, {
    ...init,
    signal: AbortSignal.timeout(recoveryMs),
    headers: {
      'E2b-Sandbox-Id': sandboxID,
      'E2b-Sandbox-Port': '49983',
      'X-Access-Token': envdAccessToken,
      ...init.headers,
    },
  });
const write = (sandbox: Sandbox, text: string) =>
  inside(sandbox, '/files?path=note.txt', {
    method: 'POST',
    headers: { 'Content-Type': 'application/octet-stream' },
    body: text,
  });
const read = async (sandbox: Sandbox) => (await inside(sandbox, '/files?path=note.txt')).text();
const listed = async () =>
  ((await (await platform.api('GET', '/v2/sandboxes')).json()) as Sandbox[]).map(({ sandboxID }) => sandboxID).sort();
const statusOf = (asked: Promise<Response>) =>
  asked.then(
    answer => answer.status,
    () => 0,
  );
const healthStatus = () => statusOf(fetch(`${platform.ready.url}/health`, { signal: AbortSignal.timeout(5_000) }));
const serves = () =>
  waitFor(
    'the platform to serve again',
    async () => (await healthStatus()) === 200 && (await statusOf(platform.api('GET', '/v2/sandboxes'))) === 200,
    recoveryMs,
  );
/** Checks that it is another process than `before`, and the others are the same. */
async function replaced(name: PartName, before: Partial<Record<PartName, number>>): Promise<void> {
  const now = await waitFor(
    `another ${name}`,
    () => {
      const parts = partsOf(platform.ready.pid);
      return parts[name] !== undefined && parts[name] !== before[name] && parts;
    },
    recoveryMs,
  );
  for (const other of partNames) if (other !== name) expect([other, now[other]]).toEqual([other, before[other]]);
}

describe.each([...partNames])('the %s', name => {
  test('is killed under load: sandboxes run on, errors are honest, what was answered holds, it recovers alone', async () => {
    const kept = await create();
    await write(kept, name);
    const before = partsOf(platform.ready.pid);
    const load = {
      going: true,
      created: new Set<string>(),
      ended: new Set<string>(),
      unsure: new Set<string>(),
      statuses: new Set<number>(),
    };
    const worker = async () => {
      while (load.going) {
        const asked = await platform
          .api('POST', '/v2/sandboxes', { templateID: 'base', timeout: 3600 })
          .catch(() => undefined);
        load.statuses.add(asked?.status ?? 0);
        const made =
          asked?.status === 201 ? ((await asked.json().catch(() => undefined)) as Sandbox | undefined) : undefined;
        if (!made) continue;
        load.created.add(made.sandboxID);
        if (Math.random() < 0.5) continue;
        load.unsure.add(made.sandboxID);
        const status = await statusOf(platform.api('DELETE', `/sandboxes/${made.sandboxID}`));
        load.statuses.add(status);
        if (status === 204) load.ended.add(made.sandboxID);
      }
    };
    const traffic = async () => {
      while (load.going) load.statuses.add(await statusOf(inside(kept, '/health')));
    };
    const working = [worker(), worker(), traffic()];
    await waitFor('some creates', () => load.created.size > 3, recoveryMs);
    process.kill(partOf(platform.ready.pid, name), 'SIGKILL');
    await replaced(name, before);
    await serves();
    const until = load.created.size + 3;
    await waitFor('creates to succeed again', () => load.created.size >= until, recoveryMs);
    load.going = false;
    await Promise.all(working);
    expect([...load.statuses].filter(status => ![200, 201, 204, 404, ...honest].includes(status))).toEqual([]);
    expect(await read(kept)).toBe(name);
    // Answers hold: created sandboxes are there, and ended ones are not.
    const now = new Set(await listed());
    for (const id of load.created) if (!load.unsure.has(id)) expect([id, now.has(id)]).toEqual([id, true]);
    for (const id of load.ended) expect([id, now.has(id)]).toEqual([id, false]);
    await Promise.all([...now].map(id => platform.api('DELETE', `/sandboxes/${id}`)));
    await waitFor('all to be gone', async () => (await listed()).length === 0, recoveryMs);
  }, 240_000);

  test('stands still: it is replaced, and meanwhile the others do their work', async () => {
    const kept = await create();
    await write(kept, name);
    const before = partsOf(platform.ready.pid);
    process.kill(partOf(platform.ready.pid, name), 'SIGSTOP');
    if (name === 'node') {
      // The api answers, and connections into existing sandboxes go on.
      expect(await healthStatus()).toBe(200);
      expect(await read(kept)).toBe(name);
    } else if (name === 'api') {
      expect(await read(kept)).toBe(name);
    }
    await replaced(name, before);
    await serves();
    expect(await read(kept)).toBe(name);
    expect((await platform.api('DELETE', `/sandboxes/${kept.sandboxID}`)).status).toBe(204);
    expect(platform.log()).toContain('a process of the platform stands still and is ended');
  }, 240_000);
});

test('what ends while the api is away is told to the next one', async () => {
  const [ending, staying] = await Promise.all([create(), create()]);
  const before = partsOf(platform.ready.pid);
  const record = (await Bun.file(
    `${platform.ready.dataDir}/node/sandboxes/${ending.sandboxID}/record.json`,
  ).json()) as { pid: number };
  process.kill(before.api as number, 'SIGKILL');
  process.kill(record.pid, 'SIGKILL');
  await replaced('api', before);
  await serves();
  await waitFor('the sandbox to be gone', async () => (await listed()).join() === staying.sandboxID, 30_000);
  expect((await platform.api('DELETE', `/sandboxes/${staying.sandboxID}`)).status).toBe(204);
}, 120_000);

test('restarts are counted for the operator', async () => {
  const token = (await Bun.file(`${platform.ready.dataDir}/metrics-token`).text()).trim();
  const text = await (
    await fetch(`${platform.ready.url}/metrics`, { headers: { Authorization: `Bearer ${token}` } })
  ).text();
  for (const process of partNames) {
    for (const reason of ['ended', 'stalled'])
      expect(text).toMatch(
        new RegExp(`atoll_process_restarts_total\\{process="${process}",reason="${reason}"\\} [1-9]`),
      );
  }
});
