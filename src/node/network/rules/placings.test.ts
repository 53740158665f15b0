import { describe, expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { NetlinkError } from '../../native/netlink.ts';
import { Placings } from './placings.ts';

// Work that needs packet rules, while somebody has removed them.

/** Rules that are there until the test says that they are not. */
async function placed(timeoutMs?: number) {
  const rules = { areThere: true };
  const placings = new Placings(() => rules.areThere, timeoutMs);
  await placings.place(async () => {});
  const tries: boolean[] = [];
  const change = () => {
    tries.push(rules.areThere);
    if (!rules.areThere) throw new Error('no such table');
    return 'done';
  };
  const putBack = () => placings.place(async () => void (rules.areThere = true));
  return { rules, placings, tries, change, putBack };
}

describe('work that needs packet rules', () => {
  test('is done at once where they are there', async () => {
    const { placings, tries, change } = await placed();
    expect(await placings.whenThere(change)).toBe('done');
    expect(tries).toEqual([true]);
  });

  test('waits for rules that somebody has removed', async () => {
    const { rules, placings, tries, change, putBack } = await placed();
    rules.areThere = false;
    const changed = placings.whenThere(change);
    await Bun.sleep(10);
    expect(tries).toEqual([false]);
    await putBack();
    expect(await changed).toBe('done');
  });

  test('is done again where they came back while it failed', async () => {
    const { placings, putBack } = await placed();
    let count = 0;
    const slow = async () => {
      if (++count > 1) return 'done';
      await putBack();
      throw new Error('no such table');
    };
    expect(await placings.whenThere(slow)).toBe('done');
  });

  test('is done again if they are already there when it fails, before the placing has ended', async () => {
    for (const isPut of [true, false]) {
      const { rules, placings, tries, change } = await placed();
      rules.areThere = false;
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const placing = placings.place(() => promise);
      const changed = placings.whenThere(async () => {
        const failed = await Promise.resolve()
          .then(change)
          .catch((error: unknown) => error);
        rules.areThere = true;
        if (failed instanceof Error) throw failed;
        return failed;
      });
      await Bun.sleep(0);
      expect(tries).toEqual([false]);
      if (isPut) resolve();
      else reject(new Error('nft fails'));
      await placing.catch(() => {});
      expect([await changed, tries]).toEqual(['done', [false, true]]);
    }
  });

  test('fails with its own trouble where they are there, or were never put in place', async () => {
    const { placings } = await placed();
    const fails = () => {
      throw new Error('no such policy');
    };
    await expect(placings.whenThere(fails)).rejects.toThrow('no such policy');
    await expect(new Placings(() => false).whenThere(fails)).rejects.toThrow('no such policy');
  });

  test('fails in time where they do not come back', async () => {
    const { rules, placings, change } = await placed(20);
    rules.areThere = false;
    const failed = await placings.whenThere(change).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(AtollError);
    expect(failed).toMatchObject({ code: 'unavailable', retryAfterSeconds: 2 });
  });

  test('waits on where they could not be put back at the first attempt', async () => {
    const { rules, placings, change, putBack } = await placed();
    rules.areThere = false;
    const changed = placings.whenThere(change);
    await expect(placings.place(() => Promise.reject(new Error('nft fails')))).rejects.toThrow('nft fails');
    await placings.present;
    await putBack();
    expect(await changed).toBe('done');
  });
});

test('taking something out checks the rules only if it fails, and also takes it from rules that came back', () => {
  const lacking = new NetlinkError('taking out', 2);
  /** The outcome of taking something out, with one of `failures` at each attempt, while the rules are there or not. */
  const takeOut = async (failures: Error[], areThere: boolean) => {
    let [asked, tries] = [0, 0];
    const placings = new Placings(() => (asked++, areThere));
    await placings.place(async () => {});
    const work = () => {
      const failure = failures[tries++];
      if (failure) throw failure;
    };
    const failed = await Promise.resolve()
      .then(() => placings.takeOut(work))
      .catch((error: unknown) => error);
    return { asked, tries, failed };
  };
  return Promise.all([
    expect(takeOut([], true)).resolves.toEqual({ asked: 0, tries: 1, failed: undefined }),
    expect(takeOut([lacking], false)).resolves.toEqual({ asked: 1, tries: 1, failed: undefined }),
    expect(takeOut([lacking], true)).resolves.toEqual({ asked: 1, tries: 2, failed: undefined }),
    expect(takeOut([lacking, lacking], true)).resolves.toEqual({ asked: 1, tries: 2, failed: lacking }),
    expect(takeOut([new NetlinkError('taking out', 16)], false)).resolves.toMatchObject({ asked: 0, tries: 1 }),
  ]);
});

test('an object in use by a table that is being placed is left to whoever places that', async () => {
  for (const failures of [[16], [2, 16]]) {
    const placings = new Placings(() => true);
    await placings.place(async () => {});
    const errors = failures.map(errno => new NetlinkError('taking out', errno));
    const takeOut = () =>
      placings.takeOut(() => {
        const error = errors.shift();
        if (error) throw error;
      });
    const coming = Promise.withResolvers<void>();
    const placed = placings.place(() => coming.promise);
    expect(takeOut).not.toThrow();
    coming.reject(new Error('nft fails'));
    await placed.catch(() => {});
    errors.push(new NetlinkError('taking out', 16));
    expect(takeOut).toThrow();
  }
});
