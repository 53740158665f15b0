import { afterEach, beforeEach, expect, mock, spyOn, test } from 'bun:test';
import type { EndEvent } from './end-status.ts';
import { ProcessTable } from './process-table.ts';
import type { Process } from './process.ts';

let nowMs = 0;
beforeEach(() => {
  nowMs = 0;
  spyOn(performance, 'now').mockImplementation(() => nowMs);
});
afterEach(() => mock.restore());

/** A process as far as a table looks at it. */
function processOf(pid: number, tag?: string) {
  const { promise: ended, resolve } = Promise.withResolvers<EndEvent>();
  const process = { pid, tag, isAlive: true, ended };
  return {
    process: process as unknown as Process,
    /** The program ends; others may still write for it. */
    dies: () => void (process.isAlive = false),
    async ends(status: string) {
      process.isAlive = false;
      resolve({ status });
      await ended;
      await Promise.resolve();
    },
  };
}
const byPid = (pid: number) => ({ process: { pid } });
const byTag = (tag: string) => ({ process: { tag } });

test('a process is found by its PID and its tag while it runs, and its end for a while', async () => {
  const table = new ProcessTable();
  const { process, ends } = processOf(7, 'a');
  let told = 0;
  table.add(process, () => told++);
  expect([table.select(byPid(7)), table.select(byTag('a'))]).toEqual([{ process }, { process }]);
  expect([table.selectAlive(byPid(7)), table.alive()]).toEqual([process, [process]]);
  expect(told).toBe(0);
  await ends('exit status 3');
  expect([told, table.alive()]).toEqual([1, []]);
  expect(() => table.selectAlive(byPid(7))).toThrow('process with pid 7 not found');
  const end = { pid: 7, event: { status: 'exit status 3' } };
  expect([table.select(byPid(7)), table.select(byTag('a'))]).toEqual([end, end]);
  nowMs = 30_000;
  expect(table.select(byPid(7))).toEqual(end);
  nowMs = 30_001;
  expect(() => table.select(byTag('a'))).toThrow("process with tag 'a' not found");
});

test('one that runs comes before one that writes on, and that before the ends of others', async () => {
  const table = new ProcessTable();
  for (const status of ['first', 'second']) {
    const past = processOf(7);
    table.add(past.process, () => {});
    await past.ends(status);
  }
  // The newest end counts.
  expect(table.select(byPid(7))).toEqual({ pid: 7, event: { status: 'second' } });
  const [written, running] = [processOf(7), processOf(7)];
  table.add(written.process, () => {});
  written.dies();
  expect(table.select(byPid(7))).toEqual({ process: written.process });
  expect(() => table.selectAlive(byPid(7))).toThrow('not found');
  expect(table.alive()).toEqual([]);
  table.add(running.process, () => {});
  expect(table.select(byPid(7))).toEqual({ process: running.process });
  expect(table.selectAlive(byPid(7))).toBe(running.process);
});

test('the newest 2,000 ends are kept', () => {
  const table = new ProcessTable();
  for (let pid = 1; pid <= 2001; pid++) table.addEnded({ pid, tag: undefined, event: { status: '' } });
  expect(() => table.select(byPid(1))).toThrow('not found');
  for (const pid of [2, 2001]) expect(table.select(byPid(pid))).toMatchObject({ pid });
});

test('a tag that is given goes before a PID, and one of both must be', () => {
  const table = new ProcessTable();
  const { process } = processOf(7, 'a');
  table.add(process, () => {});
  expect(() => table.select({ process: { pid: 7, tag: 'b' } })).toThrow("tag 'b'");
  for (const message of [{}, { process: {} }, { process: null }])
    expect(() => table.selectAlive(message)).toThrow('process must name a pid or a tag');
});
