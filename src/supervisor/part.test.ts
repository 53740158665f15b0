import { afterEach, expect, test } from 'bun:test';
import { join } from 'node:path';
import { AtollError } from '../base/error.ts';
import { createLog } from '../base/telemetry/log.ts';
import { startPart, type Part, type PartOptions } from './part.ts';

const parts: Part<unknown>[] = [];
afterEach(() => Promise.all(parts.splice(0).map(part => part.stop())));

type Entry = { level: string; message: string; how?: string; error?: string; afterMs?: number; process?: string };

/** A part whose process runs `start` (see `runPart`), and what the supervisor learns of it. */
function partOf(start: string, more: Partial<PartOptions<unknown>> = {}) {
  const inside = JSON.stringify(join(import.meta.dir, 'inside.ts'));
  const told: unknown[] = [];
  const entries: Entry[] = [];
  let wake = () => {};
  const tell = (...what: unknown[]) => {
    told.push(what);
    wake();
  };
  const options: PartOptions<unknown> = {
    name: 'edge',
    command: () => [process.execPath, '-e', `import { runPart } from ${inside}; runPart(${start})`],
    ...{ environment: { OWN: 'variable' }, settings: () => ({ n: 1 }), stallLooksMax: 30 },
    log: createLog('debug', line => {
      entries.push(JSON.parse(line) as Entry);
      wake();
    }),
    readAbout: about => about,
    onPhase: text => tell('phase', text),
    onAsk: async () => undefined,
    onReady: about => tell('ready', about),
    onRestart: reason => tell('restart', reason),
    onGivenUp: error => tell('given up', error.message),
    ...more,
  };
  const part = startPart(options);
  parts.push(part);
  /** Resolves when `isSo` holds for what the supervisor has learned. */
  const until = async (isSo: () => boolean) => {
    while (!isSo()) await new Promise<void>(resolve => (wake = resolve));
  };
  return {
    part,
    told,
    entries,
    until,
    count: (kind: string) => told.filter(what => (what as unknown[])[0] === kind).length,
  };
}

test('a part is started with its settings and environment, serves, takes updates and stops', async () => {
  const { part, told, until, entries } = partOf(`async (settings, { phase }) => {
    phase('loads');
    return {
      about: { settings, own: process.env.OWN, cwd: process.cwd(), home: process.env.HOME ?? null },
      update: value => phase('updated to ' + value),
      stop: async () => phase('stops'),
    };
  }`);
  const about = { settings: { n: 1 }, own: 'variable', cwd: '/', home: null };
  expect(await part.ready).toEqual(about);
  part.update(7);
  await until(() => told.length >= 3);
  await part.stop();
  expect(told).toEqual([
    ['phase', 'loads'],
    ['ready', about],
    ['phase', 'updated to 7'],
    ['phase', 'stops'],
  ]);
  expect(entries).toEqual([]);
});

test('a part’s requests are carried out, and answered with the outcome', async () => {
  const { part } = partOf(
    `async (_, { ask }) => ({
      about: [await ask('one', { a: 1 }), await ask('none', null) ?? 'nothing', await ask('bad', 2).catch(e => e.code)],
      stop: async () => {},
    })`,
    {
      async onAsk(what, value) {
        if (what === 'bad') throw new AtollError('forbidden', 'no');
        return what === 'one' ? [what, value] : undefined;
      },
    },
  );
  expect(await part.ready).toEqual([['one', { a: 1 }], 'nothing', 'forbidden']);
});

test('a part that can’t start is not started again, and says why', async () => {
  const failing = partOf(`async () => { throw Object.assign(new Error('no settings')) }`);
  await expect(failing.part.ready).rejects.toMatchObject({ message: 'no settings' });
  const ending = partOf('process.exit(3)');
  await expect(ending.part.ready).rejects.toMatchObject({
    code: 'internal',
    message: "The platform's edge ended while it started (exit code 3)",
  });
  const killed = partOf(`process.kill(process.pid, 'SIGTERM') && new Promise(() => {})`);
  await expect(killed.part.ready).rejects.toThrow('(signal SIGTERM)');
  const unset = partOf('async () => {}', { settings: () => Promise.reject(new AtollError('invalid', 'no pair')) });
  await expect(unset.part.ready).rejects.toMatchObject({ code: 'invalid', message: 'no pair' });
  expect([failing, ending, unset].map(({ told }) => told)).toEqual([[], [], []]);
});

test('a part with an unsound report does not count as serving', async () => {
  const { part, told, entries } = partOf(`async () => ({ about: { port: 'all' }, stop: async () => {} })`, {
    readAbout() {
      throw new AtollError('invalid', 'its port must be a number');
    },
  });
  await expect(part.ready).rejects.toThrow("The platform's edge ended while it started (signal SIGKILL)");
  expect(told).toEqual([]);
  expect(entries).toMatchObject([{ level: 'error', error: 'its port must be a number' }]);
});

test('a part that ends is started again, alone, with its settings read anew', async () => {
  let starts = 0;
  const { part, count, until, entries, told } = partOf(
    `async ({ start }, { fail }) => {
      if (start < 3) setTimeout(() => fail(new Error('lost it')), 1);
      return { about: start, stop: async () => {} };
    }`,
    { settings: () => ({ start: ++starts }) },
  );
  expect(await part.ready).toBe(1);
  await until(() => count('ready') === 3);
  expect(told.filter(what => (what as string[])[0] === 'restart')).toEqual([
    ['restart', 'ended'],
    ['restart', 'ended'],
  ]);
  expect(entries).toMatchObject([
    { level: 'error', process: 'edge', how: 'exit code 1', error: 'lost it', afterMs: 100 },
    { level: 'error', process: 'edge', how: 'exit code 1', error: 'lost it', afterMs: 200 },
  ]);
  await part.stop();
  expect(entries).toHaveLength(2);
});

test('a part that keeps ending is given up', async () => {
  const { part, until, count, told } = partOf(
    `async (_, { fail }) => (setTimeout(() => fail(new Error('again')), 1), { about: 1, stop: async () => {} })`,
    { endsMax: 1 },
  );
  await part.ready;
  await until(() => count('given up') === 1);
  expect(told).toEqual([
    ...[
      ['ready', 1],
      ['restart', 'ended'],
      ['ready', 1],
      ['restart', 'ended'],
    ],
    ['given up', "The platform's edge has ended 2 times in a row and is not started again: again"],
  ]);
  await part.stop();
});

test('a part that can’t be started again for now is tried later', async () => {
  let launches = 0;
  const inside = JSON.stringify(join(import.meta.dir, 'inside.ts'));
  const { part, until, count, entries } = partOf('', {
    command() {
      if (++launches === 2) throw new Error('no memory');
      const end = launches === 1 ? `setTimeout(() => process.exit(1), 1)` : '';
      return [
        process.execPath,
        '-e',
        `import { runPart } from ${inside}; runPart(async () => { ${end}; return { about: 1, stop: async () => {} } })`,
      ];
    },
  });
  await part.ready;
  await until(() => count('ready') === 2);
  expect(entries).toMatchObject([
    { how: 'exit code 1', afterMs: 100 },
    { how: 'not started', error: 'no memory', afterMs: 200 },
  ]);
});

test('stopping a part is not a failed start', async () => {
  const { part, entries, told, until } = partOf(
    `async (_, { phase }) => (phase('waits'), await Bun.sleep(20), Promise.reject(new Error('too late')))`,
  );
  await until(() => told.length === 1);
  await part.stop();
  await expect(part.ready).rejects.toMatchObject({ code: 'canceled' });
  expect(entries).toMatchObject([{ level: 'warn', error: 'too late' }]);
});

test('a part that is stopped while it waits for its restart stays away', async () => {
  const { part, until, count, told } = partOf(
    `async () => (setTimeout(() => process.exit(1), 1), { about: 1, stop: async () => {} })`,
  );
  await part.ready;
  await until(() => count('restart') === 1);
  await part.stop();
  // Another part ends and is there again, later than the first one would have been.
  const other = partOf(`async () => (setTimeout(() => process.exit(1), 1), { about: 1, stop: async () => {} })`);
  await other.until(() => other.count('ready') === 2);
  expect(told).toHaveLength(2);
});

test('a part that fails to stop in order is reported', async () => {
  const { part, entries } = partOf(`async () => ({ about: 1, stop: async () => { throw new Error('stuck') } })`);
  await part.ready;
  await part.stop();
  expect(entries).toMatchObject([{ level: 'warn', how: 'exit code 1', error: 'stuck' }]);
});
