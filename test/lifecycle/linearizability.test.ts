import { describe, expect } from 'bun:test';
import { startPlatform } from '../support/platform.ts';
import { testUnless } from '../support/skip.ts';
import { checkHistory, withoutChecker, type Operation } from './support/history.ts';
import { runRivals } from './support/rivals.ts';

const seed = Number(process.env['STORM_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const testIt = testUnless(withoutChecker());

describe('what clients are told is linearizable', () => {
  testIt('the checker tells what no order explains', async () => {
    const explained = {
      'paused and resumed': [
        one('create', 'done'),
        one('pause', 'done'),
        one('look', 'paused'),
        one('connect', 'done'),
      ],
      'a pause takes effect later': [
        one('create', 'done'),
        one('pause', ''),
        one('look', 'running'),
        one('look', 'paused'),
      ],
    };
    const unexplained = {
      'comes back': [one('create', 'done'), one('kill', 'done'), one('look', 'running')],
      'comes back after a kill without answer': [
        one('create', 'done'),
        one('kill', ''),
        one('look', 'missing'),
        one('look', 'running'),
      ],
      'is in the way after its kill': [one('create', 'done'), one('kill', 'done'), one('connect', 'conflict')],
      'runs though it was paused': [one('create', 'done'), one('pause', 'done'), one('look', 'running')],
      'resumed though it ran': [one('create', 'done'), one('connect', 'done')],
      'is lost': [one('create', 'done'), one('look', 'missing')],
    };
    const histories = Object.entries({ ...explained, ...unexplained });
    const findings = await checkHistory(histories.flatMap(([name, history]) => inTurn(name, history)));
    expect(findings.map(({ sandbox, verdict }) => `${sandbox}: ${verdict}`)).toEqual(
      Object.keys(unexplained)
        .sort()
        .map(name => `${name}: Illegal`),
    );
  });

  testIt(
    `while four clients change the same sandboxes and processes are killed (STORM_SEED=${seed})`,
    async () => {
      await using platform = await startPlatform({ ATOLL_POOL_SIZE: '2' });
      const { operations } = await runRivals(platform, {
        seed,
        operations: 400,
        perStrike: 80,
        clients: 4,
        victims: ['api', 'node', 'edge'],
      });
      expect(await checkHistory(operations)).toEqual([]);
      // Histories without concurrent operations would prove nothing.
      const told = new Set(operations.map(({ kind, told }) => `${kind} ${told}`));
      for (const both of ['pause done', 'connect done', 'kill done', 'look missing', 'pause conflict'])
        expect(told).toContain(both);
    },
    10 * 60_000,
  );
});

const one = (kind: Operation['kind'], told: Operation['told']) => ({ kind, told });

/** Operations one after another, on a sandbox of this name. */
function inTurn(sandbox: string, history: Pick<Operation, 'kind' | 'told'>[]): Operation[] {
  return history.map((operation, at) => ({
    client: 0,
    sandbox,
    called: 2 * at,
    returned: operation.told === '' ? null : 2 * at + 1,
    ...operation,
  }));
}
