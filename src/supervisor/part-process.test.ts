import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { createLog } from '../base/telemetry/log.ts';
import type { FromPart } from './messages.ts';
import { type ProcessEnd, runPartProcess } from './part-process.ts';

/** How a process that runs `program` ended, what it reported, and what was logged about it. */
async function endOf(program: string, { stallLooksMax = 30, settings = {} as unknown } = {}) {
  const said: FromPart[] = [];
  const logged: { level: string; seconds?: number }[] = [];
  const ended = Promise.withResolvers<ProcessEnd>();
  const child = runPartProcess(
    {
      ...{ name: 'api', environment: {}, settings: () => settings, stallLooksMax },
      command: () => [process.execPath, '-e', program],
      log: createLog('debug', line => void logged.push(JSON.parse(line))),
    },
    {
      onMessage(message, from) {
        said.push(message);
        expect(from).toBe(child);
      },
      onEnd: ended.resolve,
    },
  );
  const end = await ended.promise;
  await child.ended;
  return { end, said, logged };
}

const inside = JSON.stringify(join(import.meta.dir, 'inside.ts'));
const part = (start: string) => `import { runPart } from ${inside}; runPart(${start})`;

test('a process whose event loop stands still is ended, and one that is only quiet is not', async () => {
  const blocks = part('async () => { setTimeout(() => { for (;;); }, 1); return { about: 1 } }');
  const sleeps = part(
    'async (_, { fail }) => { setTimeout(() => fail(new Error("done")), 2_500); return { about: 2 } }',
  );
  const [stalled, quiet] = await Promise.all([
    endOf(blocks, { stallLooksMax: 1 }),
    endOf(sleeps, { stallLooksMax: 1 }),
  ]);
  expect(stalled.end).toMatchObject({ how: 'signal SIGKILL', reason: 'stalled', failure: undefined });
  expect(stalled.logged).toMatchObject([{ level: 'error', process: 'api', seconds: 2 }]);
  expect(quiet.end).toMatchObject({ how: 'exit code 1', reason: 'ended', failure: { message: 'done' } });
  expect([quiet.logged, quiet.said.filter(({ kind }) => kind !== 'beat')]).toEqual([[], [{ kind: 'ready', about: 2 }]]);
  expect(quiet.end.lifeMs).toBeGreaterThanOrEqual(2_500);
});

test('a process that hangs up, or sends an invalid message, is no longer heard', async () => {
  const [gone, chatters] = await Promise.all([
    endOf(`require('node:fs').closeSync(3); setInterval(() => {}, 1000)`),
    // Longer than a part's messages may be.
    endOf(part(`async () => ({ about: 'x'.repeat(2 << 20) })`)),
  ]);
  expect([gone.end.how, gone.end.reason]).toEqual(['signal SIGKILL', 'ended']);
  expect(chatters.said.filter(({ kind }) => kind === 'ready')).toEqual([]);
  expect(chatters.end.failure).toBeUndefined();
});

test('a process gets the given environment, the runtime’s own settings, and no more', async () => {
  const { said } = await endOf(
    part('async (_, { phase, fail }) => { phase(JSON.stringify(process.env)); fail(1); return { about: 1 } }'),
  );
  const phase = said.find(({ kind }) => kind === 'phase') as { text: string };
  expect(Object.keys(JSON.parse(phase.text)).filter(name => name.startsWith('MIMALLOC'))).toHaveLength(2);
  expect(JSON.parse(phase.text)).not.toHaveProperty('PATH');
});
