import { expect, test } from 'bun:test';
import { firstErrors } from './criu-words.ts';

const pid = process.pid;
/** A process that has ended, whose ID the host assigned after this process's. */
const ended = Bun.spawnSync(['true']).pid;
const logOf = (...reasons: string[]) => reasons.map(reason => `(00.1) Error (criu/x.c:1): ${reason}`).join('\n');
const said = (...reasons: string[]) =>
  firstErrors(logOf(...reasons), { places: ['/data/dumps/one'], processes: [pid], lowestPid: pid });

test('processes get the numbers that the sandbox knows, and those that have ended get none', () => {
  // Here both are the same, because the tests have no namespace of their own.
  expect(said(`SEIZE ${pid}: can't wait task: No child processes`)).toBe(
    `SEIZE ${pid}: can't wait task: No child processes`,
  );
  for (const [reason, shown] of [
    [`SEIZE ${ended}: can't wait task`, "SEIZE a process: can't wait task"],
    [`Can't infect (pid: ${ended}) with parasite`, "Can't infect (pid: a process) with parasite"],
    [`Can't open ${ended}/task/${ended}/cgroup on procfs`, "Can't open a process/task/a process/cgroup on procfs"],
    [`Unable to read /proc/${ended}/loginuid`, 'Unable to read /proc/…/loginuid'],
    [`Unable to read /proc/1/loginuid`, 'Unable to read /proc/…/loginuid'],
    [`pid=${ended}, ${ended}.7`, 'pid=a process, a process.7'],
  ] as const)
    expect(said(reason)).toBe(shown);
});

test('a fork bomb that CRIU can’t stop is described in plain words', () => {
  expect(
    said(
      'Timeout reached. Try to interrupt: 0',
      `Unseizable non-zombie ${ended} found, state R, err -1/4`,
      'Dumping FAILED.',
    ),
  ).toBe(
    "its processes could not all be stopped in time, as where they start others all the time; can't stop a process",
  );
});

test('other numbers and the sandbox’s own names stay, and places of the host do not', () => {
  for (const reason of [
    `Can't open file data/${ended}/log-${ended}.txt on restore: No such file or directory`,
    "Can't dump ghost file /tmp/x of 99999999999 size, increase limit",
    "Can't dump file 5 of that type [10600] (unknown /dev/x)",
    'Collect fds failed with -22',
  ])
    expect(said(reason)).toBe(reason);
  expect(said("Can't open /data/dumps/one/pages-1.img")).toBe("Can't open …/pages-1.img");
});

test('a host whose process IDs began anew has given those above and below', () => {
  const facts = { places: [], processes: [], lowestPid: 4_000_000 };
  expect(firstErrors(logOf(`Can't attach to ${ended}`), facts)).toBe("Can't attach to a process");
  expect(firstErrors(logOf("Can't attach to 4000001"), facts)).toBe("Can't attach to a process");
});
