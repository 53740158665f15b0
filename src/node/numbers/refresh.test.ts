import { afterEach, beforeEach, expect, jest, test } from 'bun:test';
import { createLog } from '../../base/telemetry/log.ts';
import { slotOf } from '../layout.ts';
import { bootSeconds } from './boot-time.ts';
import { startRefreshing } from './refresh.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

type Parts = Parameters<typeof startRefreshing>[0];
type Sandbox = ReturnType<Parts['sandboxes']['running']>[number];
type Refreshed = [slot: string, used: Parameters<Sandbox['processes']['driver']['refreshOwnFiles']>[2]];

/**
 * A node with these slots in use. `happened` records the calls to the control groups; `cpuSeconds` is the use of each.
 */
function node(...numbers: number[]) {
  const happened: string[] = [];
  const refreshed: Refreshed[] = [];
  const logged: string[] = [];
  const asked: string[] = [];
  const cpuSeconds: Record<string, number> = {};
  const fault = { text: '' };
  const spread: [string, number][][] = [];
  const resources = { cpuCount: 2, memoryMiB: 512, diskMiB: 1024 };
  const driver = {
    cgroupPath: ({ name }: { name: string }) => `group/${name}`,
    refreshOwnFiles: ({ name }: { name: string }, _: unknown, used: Refreshed[1]) => refreshed.push([name, used]),
  };
  const startedAtMs = Date.now() - 100_000;
  const running = numbers.map(number => ({
    sandboxId: `sandbox-${number}`,
    record: { executionId: 'first', resources, startedAtMs },
    processes: { pid: process.pid, slot: slotOf(0, number), driver },
  }));
  const memory = { usedBytes: 5 } as Refreshed[1]['memory'];
  const cgroups = {
    forget: () => {},
    cpuUs: (path: string) => {
      asked.push(path);
      if (path === '/atoll0') return Object.values(cpuSeconds).reduce((sum, seconds) => sum + seconds, 0) * 1e6;
      const seconds = cpuSeconds[path] ?? 0;
      if (Number.isNaN(seconds)) throw new Error('it has ended');
      return seconds * 1e6;
    },
    cpuTimes: (path: string) => ({ userSeconds: (cpuSeconds[path] ?? 0) - 1, systemSeconds: 1 }),
    memory: () => memory,
    tasks: () => 7,
    weigh: (path: string, isHeavy: boolean) => happened.push(`weigh ${path} ${isHeavy}`),
    pins: {
      adopt: (path: string) => happened.push(`adopt ${path}`),
      spread: (busy: ReadonlyMap<string, number>, shares: ReadonlyMap<number, number>) => {
        if (fault.text) throw new Error(fault.text);
        expect(shares.size).toBeGreaterThan(0);
        spread.push([...busy]);
      },
    },
  };
  const { stop } = startRefreshing({
    sandboxes: { running: () => running },
    cgroups,
    layout: { installation: 0 },
    log: createLog('debug', line => logged.push(line)),
  } as unknown as Parts);
  return {
    running,
    happened,
    asked,
    refreshed,
    logged,
    cpuSeconds,
    fault,
    spread,
    memory,
    stop,
    [Symbol.dispose]: stop,
  };
}

test('a sandbox is counted with its first turn, and its files follow what it uses from then on', () => {
  using it = node(1);
  it.cpuSeconds['group/s1'] = 10;
  jest.advanceTimersByTime(1000);
  expect(it.happened).toEqual(['adopt group/s1', 'weigh group/s1 false']);
  expect(it.refreshed).toEqual([]);
  it.cpuSeconds['group/s1'] = 10.2;
  jest.advanceTimersByTime(1000);
  expect(it.refreshed).toHaveLength(1);
  const [slot, used] = it.refreshed[0]!;
  expect(slot).toBe('s1');
  const expected = { memory: it.memory, tasks: 7, bootSeconds: bootSeconds(process.pid) };
  expect(used).toMatchObject(expected);
  expect(used.times.userSeconds).toBeCloseTo(9.2);
  expect(used.times.systemSeconds).toBe(1);
  // It has lived for a hundred seconds and one and a quarter, with two processors.
  expect(used.times.idleSeconds).toBeCloseTo(101.25 * 2 - 10.2, 5);
  // A fifth of a processor for a second.
  expect(used.load[0]).toBeCloseTo(0.2 * (1 - Math.exp(-1 / 60)), 5);
  expect(it.happened).toHaveLength(2);
});

test('nobody reads in one that has used nothing, and the load counts the time since it was looked at', () => {
  using it = node(2);
  jest.advanceTimersByTime(3000);
  expect(it.refreshed).toEqual([]);
  it.cpuSeconds['group/s2'] = 0.3;
  jest.advanceTimersByTime(1000);
  expect(it.refreshed).toHaveLength(1);
  const seconds = 3;
  expect(it.refreshed[0]?.[1].load[0]).toBeCloseTo(0.1 * (1 - Math.exp(-seconds / 60)), 5);
  it.cpuSeconds['group/s2'] = 0.4;
  jest.advanceTimersByTime(1000);
  const before = 0.1 * (1 - Math.exp(-seconds / 60));
  const load = it.refreshed[1]?.[1].load[0];
  expect(load).toBeCloseTo(before * Math.exp(-1 / 60) + 0.1 * (1 - Math.exp(-1 / 60)), 5);
});

test('one that computes a lot comes after others, until it has not for a while', () => {
  using it = node(1);
  jest.advanceTimersByTime(1000);
  it.happened.length = 0;
  it.cpuSeconds['group/s1'] = 2;
  jest.advanceTimersByTime(1000);
  expect(it.happened).toEqual(['weigh group/s1 true']);
  jest.advanceTimersByTime(1000);
  expect(it.happened).toHaveLength(1);
  jest.advanceTimersByTime(8000);
  expect(it.happened).toEqual(['weigh group/s1 true', 'weigh group/s1 false']);
});

test('every sandbox has its turn once a second, in the part of it that its slot says', () => {
  using it = node(1, 2, 3, 4, 5);
  const adopted = () => it.happened.filter(what => what.startsWith('adopt')).map(what => what.at(-1));
  const seen = [0, 1, 2, 3, 4].map(() => (jest.advanceTimersByTime(250), adopted().join('')));
  expect(seen).toEqual(['15', '152', '1523', '15234', '15234']);
});

test('once a second processors are spread by what each sandbox uses, of those that are there', () => {
  using it = node(1, 2);
  jest.advanceTimersByTime(1000);
  it.cpuSeconds['group/s1'] = 0.5;
  jest.advanceTimersByTime(1000);
  expect(it.spread[1]).toEqual([
    ['group/s1', 0.5],
    ['group/s2', 0],
  ]);
  it.running.shift();
  jest.advanceTimersByTime(1000);
  expect(it.spread).toHaveLength(3);
  expect(it.spread[2]).toEqual([['group/s2', 0]]);
});

test('another execution begins anew', () => {
  using it = node(1);
  jest.advanceTimersByTime(1000);
  it.cpuSeconds['group/s1'] = 5;
  it.running[0]!.record = { ...it.running[0]!.record, executionId: 'second' };
  jest.advanceTimersByTime(1000);
  expect(it.happened.filter(what => what === 'adopt group/s1')).toHaveLength(2);
  expect(it.refreshed).toEqual([]);
});

test('one that ends meanwhile does not stop the others from being refreshed', () => {
  using it = node(1, 5);
  jest.advanceTimersByTime(1000);
  it.cpuSeconds['group/s1'] = NaN;
  it.cpuSeconds['group/s5'] = 0.5;
  jest.advanceTimersByTime(1000);
  expect(it.refreshed.map(([slot]) => slot)).toEqual(['s5']);
  expect(it.logged.map(line => JSON.parse(line) as unknown)).toEqual([
    expect.objectContaining({ level: 'debug', sandboxId: 'sandbox-1', error: 'it has ended' }),
  ]);
});

test('if all together have done next to nothing, they are looked at only every four seconds', () => {
  using it = node(1, 2, 5);
  const looks = (ms: number) => {
    it.asked.length = 0;
    jest.advanceTimersByTime(ms);
    return it.asked.filter(path => path !== '/atoll0').length;
  };
  expect(looks(1000)).toBe(3);
  expect(looks(3000)).toBe(0);
  expect(looks(1000)).toBe(3);
  it.cpuSeconds['group/s2'] = 0.0049;
  expect(looks(1000)).toBe(0);
  // This is below the limit for one sandbox, but not for all of them together.
  it.cpuSeconds['group/s5'] = 0.0049;
  expect(looks(1000)).toBe(3);
  expect(it.refreshed.map(([slot]) => slot).toSorted()).toEqual(['s2', 's5']);
  expect(looks(1000)).toBe(0);
});

test('one that has appeared meanwhile is counted from its first turn, whatever others do', () => {
  using it = node(1);
  jest.advanceTimersByTime(2000);
  const [first] = it.running;
  it.running.push({ ...first!, sandboxId: 'sandbox-5', processes: { ...first!.processes, slot: slotOf(0, 5) } });
  jest.advanceTimersByTime(1000);
  expect(it.happened).toContain('adopt group/s5');
});

test('one that has stopped is looked at until it has used nothing for a while', () => {
  using it = node(1);
  jest.advanceTimersByTime(1000);
  it.cpuSeconds['group/s1'] = 0.03;
  jest.advanceTimersByTime(1000);
  it.asked.length = 0;
  jest.advanceTimersByTime(6000);
  // Three hundredths of a processor decay to less than one after four looks.
  expect(it.asked.filter(path => path === 'group/s1')).toHaveLength(4);
});

test('a turn that fails is reported once, and the next ones follow', () => {
  using it = node(1);
  jest.advanceTimersByTime(1000);
  it.fault.text = 'EMFILE';
  jest.advanceTimersByTime(2000);
  it.fault.text = '';
  it.cpuSeconds['group/s1'] = 0.5;
  jest.advanceTimersByTime(1000);
  expect(it.refreshed).toHaveLength(1);
  expect(it.logged.map(line => JSON.parse(line) as unknown)).toEqual([
    expect.objectContaining({ level: 'warn', error: 'EMFILE' }),
  ]);
});

test('nothing is looked at after the end', () => {
  const it = node(1);
  it.stop();
  jest.advanceTimersByTime(5000);
  expect(it.happened).toEqual([]);
});
