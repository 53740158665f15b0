import { expect, test } from 'bun:test';
import { AtollError } from '../../src/base/error.ts';
import { onEachDatabase } from '../api/databases.ts';
import { steadyClock } from '../../src/base/clock.ts';
import { Platform, until } from '../api/platform.ts';

const stateOf = async (platform: Platform, id: string) =>
  ((await platform.call('GET', `/sandboxes/${id}`)).body as { state?: string }).state;
const expire = (platform: Platform, id: string) => platform.call('POST', `/sandboxes/${id}/timeout`, { timeout: 0 });

onEachDatabase(database => {
  test.concurrent('what is to be paused when its time is over is paused, with its memory or without, as it was asked for', async () => {
    await using platform = await Platform.start({ database });
    const lifecycles = [
      { autoPause: true },
      { autoPause: true, autoPauseMemory: false },
      { autoPause: true, autoResume: { enabled: true } },
    ];
    const ids = await Promise.all(
      lifecycles.map(async lifecycle => (await platform.createSandbox(lifecycle)).sandboxID),
    );
    const { sandboxID: killed } = await platform.createSandbox();
    const shown = await Promise.all(
      ids.map(async id => ((await platform.call('GET', `/sandboxes/${id}`)).body as { lifecycle: unknown }).lifecycle),
    );
    expect(shown).toEqual([
      { autoResume: false, onTimeout: 'pause' },
      { autoResume: false, onTimeout: 'pause' },
      { autoResume: true, onTimeout: 'pause' },
    ]);
    for (const id of [...ids, killed]) expect((await expire(platform, id)).status).toBe(204);
    await until(async () =>
      (await Promise.all(ids.map(id => stateOf(platform, id)))).every(state => state === 'paused'),
    );
    await until(() => platform.node.paused().length === ids.length);
    await until(async () => (await platform.call('GET', `/sandboxes/${killed}`)).status === 404);
    const keptOf = new Map(platform.node.paused().map(({ sandboxId, kept }) => [sandboxId, kept]));
    expect(ids.map(id => keptOf.get(id))).toEqual(['memory', 'filesystem', 'memory']);
    // It does the same again after each resume.
    const [first = ''] = ids;
    expect((await platform.call('POST', `/v2/sandboxes/${first}/connect`, { timeout: 1 })).status).toBe(201);
    await until(async () => (await stateOf(platform, first)) === 'paused');
  });

  test.concurrent('when the machine’s clock is set, what runs keeps the time that it had left, and the times that are told are the new ones', async () => {
    let setMs = 0;
    const wallMs = () => Date.now() + setMs;
    await using platform = await Platform.start({ database, clock: steadyClock(wallMs) });
    const { sandboxID: long } = await platform.createSandbox({ timeout: 600 });
    const timesOf = async (id: string) => {
      const { startedAt, endAt } = (await platform.call('GET', `/sandboxes/${id}`)).body as {
        startedAt: string;
        endAt: string;
      };
      return { startMs: Date.parse(startedAt), endMs: Date.parse(endAt) };
    };
    for (const stepMs of [3_600_000, -7_200_000]) {
      const { sandboxID: short } = await platform.createSandbox({ timeout: 2 });
      setMs += stepMs;
      // Neither gone at once when the clock was set forward, nor kept for hours when it was set back.
      await until(async () => Math.abs((await timesOf(long)).startMs - wallMs()) < 30_000);
      const { startMs, endMs } = await timesOf(long);
      expect(endMs - startMs).toBe(600_000);
      await until(async () => (await platform.call('GET', `/sandboxes/${short}`)).status === 404);
      expect((await platform.call('GET', `/sandboxes/${long}`)).status).toBe(200);
    }
  });

  test.concurrent('expiry while the platform is away is made up for at its start', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id } = await platform.createSandbox({ autoPause: true, timeout: 1 });
    const { endAt } = (await platform.call('GET', `/sandboxes/${id}`)).body as { endAt: string };
    await platform.api.stop();
    await until(() => Date.now() > Date.parse(endAt));
    await platform.restart();
    await until(async () => (await stateOf(platform, id)) === 'paused');
  });

  test.concurrent('where memory can’t be kept in the end, the files are; what can’t be paused at all runs on until it can', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id } = await platform.createSandbox({ autoPause: true, autoResume: { enabled: true } });
    platform.node.memory = { kept: false, reason: 'a socket of an unknown kind' };
    await expire(platform, id);
    // A sandbox being paused already shows as paused.
    await until(() => platform.node.paused().length > 0);
    expect(platform.node.paused()).toMatchObject([{ kept: 'filesystem' }]);
    expect(platform.logged.join()).toContain('its memory could not be kept');
    await expect(platform.api.forEdge.wake(id)).rejects.toMatchObject({ code: 'not_found' });

    const { sandboxID: full } = await platform.createSandbox({ autoPause: true, autoPauseMemory: false });
    let pauses = 0;
    platform.node.before = async call => {
      if (call === 'pause' && pauses++ === 0) throw new AtollError('no_space', 'the disk is full');
    };
    await expire(platform, full);
    await until(() => platform.logged.join().includes('could not be paused and runs on'));
    expect(await stateOf(platform, full)).toBe('running');
    // In a while, not at once and for ever.
    const endMs = async () =>
      Date.parse(((await platform.call('GET', `/sandboxes/${full}`)).body as { endAt: string }).endAt);
    // The attempt is reported before it is over: its end is later once that is written.
    await until(async () => (await endMs()) > Date.now() + 5_000);
    await expire(platform, full);
    // It shows as paused before its node has been asked.
    await until(() => platform.node.paused().some(({ sandboxId }) => sandboxId === full));
    expect(await stateOf(platform, full)).toBe('paused');
    expect(pauses).toBe(2);
  });

  test.concurrent('a timeout that is extended at the last moment wins', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id } = await platform.createSandbox({ autoPause: true, timeout: 8 });
    const { endAt } = (await platform.call('GET', `/sandboxes/${id}`)).body as { endAt: string };
    expect((await platform.call('POST', `/sandboxes/${id}/timeout`, { timeout: 600 })).status).toBe(204);
    // A window in which nothing happens: until after what was its end.
    await until(() => Date.now() > Date.parse(endAt) + 500);
    expect([await stateOf(platform, id), platform.node.paused()]).toEqual(['running', []]);
  });

  test.concurrent('a connect beyond the team’s maximum is refused; a resume begins a new lifetime with its own cap', async () => {
    await using platform = await Platform.start({ database, limits: { lifetimeHours: 1 } });
    const { sandboxID: id } = await platform.createSandbox({ timeout: 3600 });
    await platform.call('POST', `/sandboxes/${id}/pause`);
    expect((await platform.call('POST', `/v2/sandboxes/${id}/connect`, { timeout: 3601 })).status).toBe(400);
    expect((await platform.call('POST', `/v2/sandboxes/${id}/connect`, { timeout: 3600 })).status).toBe(201);
    await platform.call('POST', `/sandboxes/${id}/refreshes`, { duration: 3600 });
    const { startedAt, endAt } = (await platform.call('GET', `/sandboxes/${id}`)).body as {
      startedAt: string;
      endAt: string;
    };
    expect(Date.parse(endAt) - Date.parse(startedAt)).toBeLessThanOrEqual(3_600_000);
  });
});
