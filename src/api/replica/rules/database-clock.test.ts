import { expect, test } from 'bun:test';
import { PassedTime } from '../../cluster/rules/passed-time.ts';
import type { ClockReading } from '../../database/clock.ts';
import { type Log, silentLog } from '../../../base/telemetry/log.ts';
import { databaseClock } from './database-clock.ts';

const startMs = 1_800_000_000_000;
const syncSeconds = 5;

/** A database with a clock that can be set, and control processes that use it; machines may have stood still or not. */
function world() {
  const state = { passedMs: 0, wrongMs: 0, rate: 1, correctionUs: 0, revision: 0, asked: 0 };
  const source = {
    async read(): Promise<ClockReading> {
      state.asked++;
      const { correctionUs, revision } = state;
      return { nowUs: (startMs + state.passedMs * state.rate + state.wrongMs) * 1000, correctionUs, revision };
    },
    async correct(read: ClockReading, correctionUs: number): Promise<boolean> {
      if (read.revision !== state.revision) return false;
      Object.assign(state, { correctionUs, revision: read.revision + 1 });
      return true;
    },
  };
  /** A process that has stood still for `stoodMs` with its clock, and hears machines that have not. */
  const process = async () => {
    const own = { stoodMs: 0, machines: undefined as number | null | undefined };
    const clock = await databaseClock(source, () => state.passedMs - own.stoodMs);
    const machines = { begin() {}, ahead: async () => own.machines };
    const wrongMs = () => Math.round(clock.clock() / 1000 - startMs - state.passedMs);
    /** Answers how far it found the database's clock wrong, ms; else 0. */
    const synced = async (asked: typeof machines | null) => {
      let said = 0;
      const error: Log['error'] = (_, fields) => void (said = Number(fields?.['seconds']) * 1000);
      await clock.sync(asked, { ...silentLog, error });
      return said;
    };
    return { own, sync: () => synced(machines), syncAlone: () => synced(null), wrongMs };
  };
  return { state, process };
}

test('setting the database’s clock changes no time, and neither does correcting it', async () => {
  const { state, process } = world();
  const both = [await process(), await process()];
  for (const { own } of both) own.machines = 20;
  for (const wrong of [3_600_000, -3_600_000, 0]) {
    state.passedMs += syncSeconds * 1000;
    const before = state.revision;
    state.wrongMs = wrong;
    // Both have read the clock before either has corrected it.
    const found = await Promise.all(both.map(({ sync }) => sync()));
    expect(found.filter(by => by !== 0)).toHaveLength(1);
    expect(state.revision).toBe(before + 1);
    for (const { sync, wrongMs } of both) expect([await sync(), wrongMs()]).toEqual([0, 0]);
    // A process that starts now has the same time.
    expect((await process()).wrongMs()).toBe(0);
  }
  expect(state.correctionUs).toBe(0);
});

test('a process that stood still with its clock takes over the time that passed without it', async () => {
  const { process, state } = world();
  const one = await process();
  state.passedMs += 60_000;
  one.own.stoodMs = 50_000;
  one.own.machines = 49_800;
  expect(one.wrongMs()).toBe(-50_000);
  expect(await one.sync()).toBe(0);
  expect([one.wrongMs(), state.revision]).toEqual([0, 0]);
});

test('while machines are there but report nothing, a process goes on as before', async () => {
  const { process, state } = world();
  const one = await process();
  state.wrongMs = 3_600_000;
  one.own.machines = null;
  expect([await one.sync(), one.wrongMs(), state.revision]).toEqual([0, 0, 0]);
  one.own.machines = 3;
  expect([await one.sync(), one.wrongMs(), state.revision]).toEqual([3_600_000, 0, 1]);
});

test('without any machine, the database is right', async () => {
  const { process, state } = world();
  const one = await process();
  state.wrongMs = 5_000;
  for (const sync of [one.sync, one.syncAlone]) {
    expect(await sync()).toBe(0);
    expect([one.wrongMs(), state.revision]).toEqual([5_000, 0]);
  }
});

test('a clock that goes 5 % too fast makes the time wrong by no more than a second or so in ten minutes', async () => {
  const { process, state } = world();
  const one = await process();
  one.own.machines = 10;
  state.rate = 1.05;
  for (let seconds = 0; seconds < 590; seconds += syncSeconds) {
    state.passedMs += syncSeconds * 1000;
    await one.sync();
    expect(Math.abs(one.wrongMs())).toBeLessThan(1_300);
  }
  expect(state.revision).toBeGreaterThan(50);
});

test('small differences are adopted', async () => {
  const { process, state } = world();
  const one = await process();
  one.own.machines = 0;
  state.wrongMs = -400;
  expect([await one.sync(), one.wrongMs(), state.revision]).toEqual([0, -400, 0]);
});

test('the median of the machines heard after the request says how much time has passed', async () => {
  let hereMs = 1_000;
  const passed = new PassedTime(() => hereMs);
  const say = (aheadMs: Record<string, number>, epoch = 'one') => {
    for (const [nodeId, ms] of Object.entries(aheadMs)) passed.heard(nodeId, { epoch, nowMs: 70_000 + hereMs + ms });
  };
  say({ a: 0, b: 0, c: 0 });
  hereMs += 10_000;
  const asked = passed.ahead();
  say({ a: 100, b: 50_000, c: 200 });
  hereMs += 1;
  say({ a: 100, b: 50_000, c: 200 });
  expect(await asked).toBe(200);
  passed.begin();
  const again = passed.ahead();
  hereMs += 1;
  say({ a: 100, b: 50_000, c: 200 });
  expect(await again).toBe(0);
  // A clock that has started over can't report anything yet.
  const anew = passed.ahead();
  hereMs += 1;
  say({ a: 5, b: 5, c: 5 }, 'two');
  expect(await anew).toBe(null);
  expect(await new PassedTime().ahead()).toBe(undefined);
});
