import { describe, expect, test } from 'bun:test';
import { PendingDials } from './pending-dials.ts';

// Dials into services that accept nothing, from all edges.

/** Dials that stay unanswered until `end`. */
function unanswered(dials: PendingDials) {
  const { promise, resolve } = Promise.withResolvers<number>();
  const waiting: Promise<number>[] = [];
  return {
    begin(count: number, sandboxId: string, teamId?: string) {
      for (let n = 0; n < count; n++)
        waiting.push(dials.within({ sandboxId, ...(teamId !== undefined && { teamId }) }, () => promise));
    },
    async end() {
      resolve(7);
      await Promise.all(waiting);
    },
  };
}

const dialled = (dials: PendingDials, sandboxId: string, teamId: string) =>
  dials.within({ sandboxId, teamId }, async () => 8);

describe('dials that nobody answers', () => {
  test('into one sandbox leave room for the others of its team', async () => {
    const dials = new PendingDials();
    const hanging = unanswered(dials);
    hanging.begin(1024, 'one', 'ours');
    await expect(dialled(dials, 'one', 'ours')).rejects.toMatchObject({ code: 'rate_limited' });
    expect(await dialled(dials, 'two', 'ours')).toBe(8);
    await hanging.end();
    expect(await dialled(dials, 'one', 'ours')).toBe(8);
  });

  test('into the sandboxes of one team leave half of all calls for the others', async () => {
    const dials = new PendingDials();
    const hanging = unanswered(dials);
    for (let n = 0; n < 5; n++) hanging.begin(1000, `ours-${n}`, 'ours');
    await expect(dialled(dials, 'ours-5', 'ours')).rejects.toMatchObject({ code: 'rate_limited' });
    expect(await dialled(dials, 'theirs', 'theirs')).toBe(8);
    await hanging.end();
    expect(await dialled(dials, 'ours-5', 'ours')).toBe(8);
  });

  test('that fail give their places back', async () => {
    const dials = new PendingDials();
    const failing = Array.from({ length: 1024 }, () =>
      dials.within({ sandboxId: 'one' }, () => Promise.reject(new Error('refused'))),
    );
    expect((await Promise.allSettled(failing)).every(({ status }) => status === 'rejected')).toBe(true);
    expect(await dialled(dials, 'one', 'ours')).toBe(8);
  });
});
