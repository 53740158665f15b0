import { expect } from 'bun:test';
import type { TestPlatform } from '../../support/platform.ts';
import { waitFor } from '../../support/process.ts';
import { type Ledger, lookerOf } from '../power/ledger.ts';

const recoveryMs = 90_000;

/** Useless messages: a stack, a missing member, a wait without an answer. */
const unclear = /^$|\[object |\n\s+at |undefined|null is not|timed out|TimeoutError/;

/** Every failure that anybody heard of says what is wrong. */
export function expectClear(kind: string, failures: string[]): void {
  for (const failure of failures)
    expect({ kind, failure }).toEqual({ kind, failure: expect.not.stringMatching(unclear) });
}

/** Waits until a create works again. */
export async function recovers(platform: TestPlatform): Promise<void> {
  let last = '';
  await waitFor(
    'the platform to be well',
    async () => {
      const answer = await platform.api('POST', '/sandboxes', { templateID: 'base', timeout: 60 });
      last = await answer.text();
      if (answer.status !== 201) return false;
      const { sandboxID } = JSON.parse(last) as { sandboxID: string };
      return (await platform.api('DELETE', `/sandboxes/${sandboxID}`)).status === 204;
    },
    recoveryMs,
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}: ${last}\n${platform.log().slice(-6_000)}`);
  });
}

/** Checks everything that clients were told, examining `deepMax` facts more closely. Answers the number of facts. */
export async function lookFor(
  platform: TestPlatform,
  ledger: Ledger,
  moment: number,
  deepMax: number,
  random: () => number,
): Promise<number> {
  const facts = ledger.inForce(moment);
  const problems: string[] = [];
  const check = async (what: string, look: () => Promise<void>) =>
    look().catch(error => void problems.push(`${what}: ${String(error).split('\n', 8).join(' ')}`));
  const looker = lookerOf(platform);
  await Promise.all(facts.map(fact => check(fact.what, () => fact.look(looker))));
  const deep = facts.filter(({ lookInside }) => lookInside);
  for (let left = deepMax; left > 0 && deep.length > 0; left--) {
    const [fact] = deep.splice(Math.floor(random() * deep.length), 1);
    // Examining a fact may change it.
    if (fact) fact.until = moment;
    if (fact?.lookInside) await check(fact.what, () => fact.lookInside?.(looker) ?? Promise.resolve());
  }
  expect(problems).toEqual([]);
  return facts.length;
}
