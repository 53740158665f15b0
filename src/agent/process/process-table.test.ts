import { expect, test } from 'bun:test';
import type { Process } from './process.ts';
import { ProcessTable } from './process-table.ts';

/** A process that runs until the test ends it. Its output may outlast it. */
function running(pid: number, tag?: string) {
  const { promise, resolve } = Promise.withResolvers<{ status: string }>();
  const process = { pid, tag, isAlive: true, ended: promise };
  const end = async (status: string) => {
    process.isAlive = false;
    resolve({ status });
    await promise;
  };
  return { process: process as unknown as Process, die: () => void (process.isAlive = false), end };
}
const byPid = (pid: unknown) => ({ process: { pid } });
const byTag = (tag: string) => ({ process: { tag } });
const notFound = expect.objectContaining({ code: 'not_found' });

function tableOf(...all: ReturnType<typeof running>[]) {
  const table = new ProcessTable();
  const ends: number[] = [];
  for (const { process } of all) table.add(process, () => ends.push(process.pid));
  return { table, ends };
}

test('a process is found by its PID or its tag, and nothing else is', () => {
  const [one, two] = [running(1, 'a'), running(2)];
  const { table } = tableOf(one, two);
  expect(table.select(byPid(2))).toEqual({ process: two.process });
  expect(table.select(byTag('a'))).toEqual({ process: one.process });
  expect(table.selectAlive(byTag('a'))).toBe(one.process);
  expect(table.alive()).toEqual([one.process, two.process]);
  for (const message of [byPid(3), byTag('b'), byTag('')]) {
    expect(() => table.select(message)).toThrow(notFound);
    expect(() => table.selectAlive(message)).toThrow(notFound);
  }
  for (const message of [{}, { process: {} }, byPid('x'), byPid(-1)])
    expect(() => table.select(message)).toThrow(expect.objectContaining({ code: 'invalid' }));
});

test('a tag goes before a PID where both are named', () => {
  const [one, two] = [running(1, 'a'), running(2)];
  expect(tableOf(one, two).table.selectAlive({ process: { pid: 2, tag: 'a' } })).toBe(one.process);
});

test('the end of a process is kept, and told once it is over', async () => {
  const one = running(1, 'a');
  const { table, ends } = tableOf(one);
  await one.end('exit status 0');
  expect([ends, table.alive()]).toEqual([[1], []]);
  for (const message of [byPid(1), byTag('a')])
    expect(table.select(message)).toEqual({ pid: 1, event: { status: 'exit status 0' } });
  expect(() => table.selectAlive(byPid(1))).toThrow(notFound);
});

test('one that runs comes before one that does not, and the latest of those before the others', async () => {
  const [first, second, third] = [running(1, 'a'), running(2, 'a'), running(3, 'a')];
  const { table } = tableOf(first, second, third);
  second.die();
  third.die();
  expect(table.select(byTag('a'))).toEqual({ process: first.process });
  await first.end('first');
  expect(table.select(byTag('a'))).toEqual({ process: third.process });
  await third.end('third');
  await second.end('second');
  expect(table.select(byTag('a'))).toEqual({ pid: 2, event: { status: 'second' } });
});

test('of very many ends the last ones are kept', () => {
  const { table } = tableOf();
  for (let pid = 1; pid <= 2001; pid++) table.addEnded({ pid, tag: undefined, event: { status: 'over' } });
  expect(() => table.select(byPid(1))).toThrow(notFound);
  expect(table.select(byPid(2))).toMatchObject({ pid: 2 });
  expect(table.select(byPid(2001))).toMatchObject({ pid: 2001 });
});
