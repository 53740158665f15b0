import { expect, test } from 'bun:test';
import { checkHistory, withoutChecker, type Operation } from '../lifecycle/support/history.ts';
import { runRivals, type Rivalry } from '../lifecycle/support/rivals.ts';
import { parts } from '../lifecycle/support/victims.ts';
import { startPlatform } from '../support/platform.ts';
import { circumstances, writeSection } from './support/report.ts';
import { numberOf } from './support/settings.ts';

// `npm run prove`: what clients were told about sandboxes that they change at once, tested with a checker of
// linearizability.

const options = {
  operations: numberOf('PROOF_OPERATIONS', 5_000),
  clients: numberOf('PROOF_CLIENTS', 8),
  perStrike: numberOf('PROOF_PER_STRIKE', 50),
  seed: numberOf('PROOF_SEED', Math.floor(Math.random() * 2 ** 31)),
};

test(`what ${options.clients} clients are told of shared sandboxes in ${options.operations} operations (PROOF_SEED=${options.seed})`, async () => {
  const without = withoutChecker();
  if (without !== undefined) throw new Error(without);
  const startedAt = new Date();
  await using platform = await startPlatform({ ATOLL_POOL_SIZE: '4' });
  const rivalry = await runRivals(platform, { ...options, victims: parts });
  expect(await checkHistory(rivalry.operations)).toEqual([]);
  writeSection('Linearizability', report(rivalry, startedAt));
});

function report({ operations, strikes }: Rivalry, startedAt: Date): string {
  const told: Record<string, number> = {};
  for (const { kind, told: answer } of operations) {
    const key = `${kind} | ${meaningOf[answer]}`;
    told[key] = (told[key] ?? 0) + 1;
  }
  const rows = (counts: Record<string, number>) =>
    Object.entries(counts)
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([what, count]) => `| ${what} | ${count} |`)
      .join('\n');
  return `
${options.clients} clients pause, resume, kill, look at and list the same five sandboxes at once, and make new ones. Meanwhile a process of
the platform is killed (SIGKILL), ${options.perStrike} operations apart on average.

For each sandbox the checker [porcupine](https://github.com/anishathalye/porcupine) looks for an order of everything that
clients asked and heard of it. In this order each operation takes effect at one moment between its call and its answer,
and the sandbox is what its state machine makes of that order. An operation that was answered by an error or not at all
may have taken effect at any later moment, or not at all. A list counts as a look at each sandbox.

| | |
|---|---|
${circumstances(startedAt, options.seed)}
| Sandboxes | ${new Set(operations.map(({ sandbox }) => sandbox)).size} |
| Without an order that explains what was told | 0 |

| Asked | Told | Times |
|---|---|---|
${rows(told)}

| Killed | Times |
|---|---|
${rows(strikes)}
`;
}

const meaningOf: Record<Operation['told'], string> = {
  done: 'done',
  already: 'it ran before',
  running: 'running',
  paused: 'paused',
  changing: 'something is under way',
  missing: 'there is none',
  conflict: 'not in its state',
  '': 'no answer to rely on',
};
