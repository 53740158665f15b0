import { afterAll, beforeAll, expect, setSystemTime, test } from 'bun:test';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  readSync,
  rmSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { newUuid } from '../../src/base/id.ts';
import { readIfThere } from '../../src/base/small-file.ts';
import type { ExecutionRef } from '../../src/protocol/node.ts';
import { agentPort, controlTokenHeader } from '../../src/protocol/agent.ts';
import { requestSandbox, runInSandbox } from '../node/support/run-in-sandbox.ts';
import { startTestNode, testResources, type TestNode } from '../node/support/test-node.ts';
import { bringersLeft, bringersOf, bringsAlone, plansOf, type Bringers } from '../snapshot/support/bringers.ts';
import { runDirOf } from '../support/leaks.ts';
import { waitFor } from '../support/process.ts';

let it: TestNode;
beforeAll(async () => {
  it = await startTestNode({ memory: true });
  const { memory } = await it.node.protocol.info();
  if (!memory.kept) throw new Error(`this machine can't keep memory: ${memory.reason}`);
}, 300_000);
afterAll(() => it.dispose());

const protocol = () => it.node.protocol;
const run = async (sandboxId: string, command: string) => {
  const { exitCode, stdout, stderr } = await runInSandbox(protocol(), sandboxId, command);
  if (exitCode !== 0) throw new Error(`${command}: ${exitCode} ${stderr}`);
  return stdout;
};
const kept = (sandboxId: string) => join(it.dataDir, 'node/sandboxes', sandboxId, 'kept');

/** Counts only in memory; each request returns the next number. */
const counter = `cat > /root/counter.py <<'END'
import socket
listener = socket.create_server(('127.0.0.1', 7000))
count = 0
while True:
    connection, _ = listener.accept()
    count += 1
    connection.send(str(count).encode()); connection.close()
END
touch /dev/shm/mine
(setsid python3 /root/counter.py >/dev/null 2>&1 &)`;
const count = async (sandboxId: string) => {
  const answer = await runInSandbox(protocol(), sandboxId, "bash -c 'exec 3<> /dev/tcp/127.0.0.1/7000; cat <&3'");
  return answer.exitCode === 0 ? Number(answer.stdout) : undefined;
};
async function counting(changes = {}) {
  const sandbox = await protocol().create(it.request(changes));
  await run(sandbox.sandboxId, counter);
  await waitFor('the counter', () => count(sandbox.sandboxId));
  return { sandbox, before: (await count(sandbox.sandboxId)) ?? 0 };
}
const bootId = (sandboxId: string) => run(sandboxId, 'cat /proc/sys/kernel/random/boot_id');
/** A sandbox's resources are removed after its kill was answered. */
const nothingHeld = () =>
  waitFor(
    'the files of killed sandboxes to be gone',
    () => readdirSync(join(it.dataDir, 'node/sandboxes')).length === 0,
  );

test('who goes on from memory of a clock that was ahead has its own token and environment all the same', async () => {
  // As for a template that was built before the host's clock was set back, or on another machine.
  setSystemTime(new Date(Date.now() + 60 * 60_000));
  const source = await protocol().create(it.request({ envVars: { OF: 'the source' } }));
  const snapshotId = newUuid();
  const { layers } = await protocol().snapshot({ ...source, snapshotId, memory: true });
  setSystemTime();
  const image = { ...it.request().image, layers, memorySnapshotId: snapshotId };
  const fork = await protocol().create(it.request({ image, accessToken: 'own', envVars: { OF: 'the fork' } }));
  const envs = (headers: Record<string, string> = {}) =>
    requestSandbox(protocol(), fork.sandboxId, agentPort, 'GET', '/envs', headers);
  expect((await envs()).status).toBe(401);
  const known = await envs({ 'x-access-token': 'own' });
  expect(JSON.parse(known.body.toString())).toMatchObject({ OF: 'the fork' });
  await protocol().pause(fork, { memory: true });
  const resumed = await it.resume(fork, { accessToken: 'newer' });
  expect((await envs({ 'x-access-token': 'own' })).status).toBe(401);
  expect((await envs({ 'x-access-token': 'newer' })).status).toBe(200);
  for (const sandbox of [source, resumed]) await protocol().kill(sandbox);
  await protocol().deleteSnapshot(snapshotId);
}, 60_000);

test('nobody who knows the control token of one sandbox changes another that began with the same memory', async () => {
  const source = await protocol().create(it.request({ accessToken: 'secret' }));
  const snapshotId = newUuid();
  const { layers } = await protocol().snapshot({ ...source, snapshotId, memory: true });
  const image = { ...it.request().image, layers, memorySnapshotId: snapshotId };
  const fork = () => protocol().create(it.request({ image, accessToken: 'secret' }));
  const first = await fork();
  const sandboxes = [source, first, await fork()];
  const tokenOf = ({ sandboxId }: ExecutionRef) =>
    JSON.parse(readFileSync(join(it.dataDir, 'node/sandboxes', sandboxId, 'record.json'), 'utf8'))
      .controlToken as string;
  const tokens = sandboxes.map(tokenOf);
  const open = (sandbox: ExecutionRef, token: string) =>
    requestSandbox(
      protocol(),
      sandbox.sandboxId,
      agentPort,
      'POST',
      '/init',
      { [controlTokenHeader]: token },
      Buffer.from('{"accessToken":null}'),
    );
  const statuses = () =>
    Promise.all(sandboxes.map(to => Promise.all(tokens.map(async token => (await open(to, token)).status))));
  const eachItsOwn = sandboxes.map((_, to) => tokens.map((__, from) => (from === to ? 204 : 404)));
  expect(await statuses()).toEqual(eachItsOwn);
  // The agent that replaces a killed one uses it too.
  const before = await run(first.sandboxId, 'pidof agent');
  await runInSandbox(protocol(), first.sandboxId, 'kill -KILL $(pidof agent)').catch(() => {});
  await waitFor('another agent', async () => {
    const present = await run(first.sandboxId, 'pidof agent').catch(() => before);
    return present !== before;
  });
  expect(await statuses()).toEqual(eachItsOwn);
  // And so does the one that continues from its memory.
  await protocol().pause(first, { memory: true });
  Object.assign(first, await it.resume(first));
  expect(tokenOf(first)).toBe(tokens[1] as string);
  expect(await statuses()).toEqual(eachItsOwn);
  for (const sandbox of sandboxes) await protocol().kill(sandbox);
  await protocol().deleteSnapshot(snapshotId);
}, 60_000);

test('its own numbers are right after a pause too, also for a program that has them open', async () => {
  const sandbox = await protocol().create(it.request({ resources: { ...testResources, cpuCount: 1 } }));
  const { sandboxId } = sandbox;
  const numbers = '/proc/meminfo /proc/stat /proc/loadavg /proc/cpuinfo /proc/swaps /sys/devices/system/cpu/online';
  await run(
    sandboxId,
    `cat > /root/reader.py <<'END'
import os, socket, time
files = [open(path) for path in '${numbers}'.split()]
listener = socket.create_server(('127.0.0.1', 7001))
while True:
    connection, _ = listener.accept()
    for file in files: file.seek(0)
    text = files[0].read()
    connection.send(f"{len(os.sched_getaffinity(0))} {text.split()[1]} {int(time.clock_gettime(time.CLOCK_BOOTTIME))}".encode())
    connection.close()
END
(setsid python3 /root/reader.py >/dev/null 2>&1 &)`,
  );
  const ask = async () => {
    const answer = await runInSandbox(protocol(), sandboxId, "bash -c 'exec 3<> /dev/tcp/127.0.0.1/7001; cat <&3'");
    return answer.exitCode === 0 ? answer.stdout.split(' ').map(Number) : undefined;
  };
  const [processors, totalKiB, uptime = 0] = await waitFor('the reader', ask);
  expect([processors, totalKiB]).toEqual([1, testResources.memoryMiB * 1024]);
  expect(uptime).toBeLessThan(Number((await Bun.file('/proc/uptime').text()).split(' ')[0]) - 60);
  await protocol().pause(sandbox, { memory: true });
  await it.restart();
  const resumed = await it.resume(sandbox);
  const [processorsThen, totalThen, uptimeThen = 0] = await waitFor('the reader', ask);
  expect([processorsThen, totalThen]).toEqual([1, testResources.memoryMiB * 1024]);
  expect(uptimeThen).toBeGreaterThanOrEqual(uptime);
  // What exists only in memory shows as soon as the node has looked.
  await run(sandboxId, 'head -c 64M /dev/zero > /dev/shm/filled');
  await waitFor(
    'shared memory in the numbers',
    async () => Number(await run(sandboxId, "awk '/^Shmem:/ {print $2}' /proc/meminfo")) >= 64 * 1024,
  );
  await protocol().kill(resumed);
});

/** Prints the rest of a timer, and its clocks: the monotonic one, the one since its boot, and the wall clock. */
const clocks = `cat > /root/clocks.py <<'END'
import signal, socket, time
signal.setitimer(signal.ITIMER_REAL, 3600)
listener = socket.create_server(('127.0.0.1', 7002))
while True:
    connection, _ = listener.accept()
    told = [signal.getitimer(signal.ITIMER_REAL)[0]]
    told += [time.clock_gettime(clock) for clock in (time.CLOCK_MONOTONIC, time.CLOCK_BOOTTIME, time.CLOCK_REALTIME)]
    connection.send(' '.join(map(str, told)).encode()); connection.close()
END
(setsid python3 /root/clocks.py >/dev/null 2>&1 &)`;

test('clocks and timers go on while it stands frozen, and stand still while it is on the host’s disk alone', async () => {
  const sandbox = await protocol().create(it.request());
  await run(sandbox.sandboxId, clocks);
  const told = async () => {
    const { exitCode, stdout } = await runInSandbox(
      protocol(),
      sandbox.sandboxId,
      "bash -c 'exec 3<> /dev/tcp/127.0.0.1/7002; cat <&3'",
    );
    const [left = 0, monotonic = 0, boot = 0, wall = 0] = stdout.split(' ').map(Number);
    return exitCode === 0 ? { left, monotonic, boot, wall } : undefined;
  };
  let before = await waitFor('the clocks', told);
  let execution: ExecutionRef = sandbox;
  for (const isFrozen of [true, false]) {
    await protocol().pause(execution, { memory: true });
    if (!isFrozen) await it.restart();
    const paused = performance.now();
    await waitFor('a second of the pause to be over', () => performance.now() > paused + 1000);
    const lastsSeconds = (performance.now() - paused) / 1000;
    execution = await it.resume(execution);
    const after = await waitFor('the clocks', told);
    const wentOn = after.wall - before.wall;
    // How much of the elapsed time each of them has not counted.
    const missed = [
      wentOn - (after.monotonic - before.monotonic),
      wentOn - (after.boot - before.boot),
      wentOn - (before.left - after.left),
    ].map(seconds => seconds >= lastsSeconds - 0.1);
    expect([isFrozen, ...missed]).toEqual([isFrozen, !isFrozen, !isFrozen, !isFrozen]);
    before = after;
  }
  await protocol().kill(execution);
}, 60_000);

test('processes go on where they were: let go at once, after a restart of the platform, and after that again', async () => {
  const { sandbox, before } = await counting({ envVars: { COLOUR: 'blue' } });
  const { sandboxId } = sandbox;
  const boot = await bootId(sandboxId);
  let execution: ExecutionRef = sandbox;
  for (const [cycle, restarts] of [false, true, true, false].entries()) {
    expect(await protocol().pause(execution, { memory: true })).toMatchObject({ kept: 'memory' });
    expect(await protocol().list()).toEqual([]);
    await expect(protocol().dial(sandboxId, 49983)).rejects.toMatchObject({ code: 'not_found' });
    if (restarts) await it.restart();
    execution = await it.resume(execution);
    expect(execution).toMatchObject({ from: 'memory' });
    expect(await count(sandboxId)).toBe(before + cycle + 1);
    expect([await bootId(sandboxId), await run(sandboxId, 'ls /dev/shm; echo $COLOUR')]).toEqual([
      boot,
      'mine\nblue\n',
    ]);
  }
  await protocol().kill(execution);
  await nothingHeld();
}, 60_000);

/** Holds this much memory and this many open files, and prints a digest of the memory. */
const holder = (memoryMiB: number, files: number) => `cat > /root/holder.py <<'END'
import hashlib, os, socket
held = bytearray(os.urandom(1 << 20) * ${memoryMiB})
for at in range(0, len(held), 4096): held[at:at + 8] = at.to_bytes(8, 'little')
files = [os.open('/dev/null', 0) for _ in range(${files})]
listener = socket.create_server(('127.0.0.1', 7000))
while True:
    connection, _ = listener.accept()
    connection.send(hashlib.blake2b(held).hexdigest().encode()); connection.close()
END
(ulimit -n 4096; setsid python3 /root/holder.py >/dev/null 2>&1 &)`;
const digest = async (sandboxId: string) => {
  const answer = await runInSandbox(protocol(), sandboxId, "bash -c 'exec 3<> /dev/tcp/127.0.0.1/7000; cat <&3'");
  return answer.exitCode === 0 ? answer.stdout : undefined;
};

test('memory that is still to come outlives a restart of the platform, and the next pause has all of it', async () => {
  const registry = '/run/atoll';
  const isOurs = (name: string) => readIfThere(join(registry, name, 'owner')) === it.dataDir;
  const runDir = join(registry, readdirSync(registry).find(isOurs) as string);
  let execution: ExecutionRef = await protocol().create(it.request());
  await run(execution.sandboxId, holder(150, 0));
  const before = await waitFor('the holder', () => digest(execution.sandboxId));
  let wasCaught = false;
  for (let times = 0; times < 10 && !wasCaught; times++) {
    await protocol().pause(execution, { memory: true });
    await it.restart(); // from the disk
    execution = await it.resume(execution);
    expect(execution).toMatchObject({ from: 'memory' });
    const [found] = bringersOf(runDir);
    if (!found) continue; // it was faster
    process.kill(found.bringer, 'SIGSTOP');
    wasCaught = plansOf(runDir).length > 0;
    await it.restart();
    process.kill(found.bringer, 'SIGCONT');
    expect(await digest(execution.sandboxId)).toBe(before);
  }
  expect(wasCaught).toBe(true);
  await protocol().pause(execution, { memory: true });
  await it.restart();
  execution = await it.resume(execution);
  expect(await digest(execution.sandboxId)).toBe(before);
  await protocol().kill(execution);
  await waitFor('nothing of it to be left', () => plansOf(runDir).length + bringersLeft(runDir) === 0);
}, 120_000);

/** Resumes one from the disk, and makes its bringer of memory stand still before all is there. */
async function resumeAndHold(execution: ExecutionRef): Promise<{ resumed: ExecutionRef } & Bringers> {
  let held: Bringers | undefined;
  for (let times = 0; times < 10; times++) {
    await protocol().pause(execution, { memory: true });
    await it.restart(); // from the disk
    const resuming = it.resume(execution);
    await waitFor('who brings memory', () => {
      // Processes come and go while they are searched: once found, only they are watched.
      held = bringersOf(runDirOf(it.dataDir))[0];
      return held;
    });
    const found = held as unknown as Bringers;
    while (existsSync(`/proc/${found.bringer}`) && !bringsAlone(found)) await new Promise(setImmediate);
    if (existsSync(`/proc/${found.bringer}`)) process.kill(found.bringer, 'SIGSTOP');
    execution = await resuming;
    if (plansOf(runDirOf(it.dataDir)).length > 0) return { resumed: execution, ...found };
  }
  throw new Error('memory comes faster than anybody sees');
}

test.each(['bringer', 'keeper'] as const)(
  'where the %s of its memory is killed a sandbox keeps its files, and is paused with them',
  async victim => {
    const created = await protocol().create(it.request());
    const { sandboxId } = created;
    await run(sandboxId, `${holder(150, 0)}; echo kept > /root/note`);
    await waitFor('the holder', () => digest(sandboxId));
    const { incidents, next } = await protocol().incidents(null, 0);
    expect(incidents.filter(incident => incident.sandboxId === sandboxId)).toEqual([]);
    const held = await resumeAndHold(created);
    process.kill(held[victim], 'SIGKILL');
    if (victim === 'keeper') {
      process.kill(held.bringer, 'SIGCONT');
      // Nobody can say that all of it arrived: what would be kept would not certainly be its memory.
      expect(await protocol().pause(held.resumed, { memory: true })).toMatchObject({ kept: 'filesystem' });
    } else {
      const { incidents } = await protocol().incidents(next, 30_000);
      const { executionId } = held.resumed;
      expect(incidents).toEqual([{ sandboxId, executionId, reason: 'memory_lost' }]);
    }
    expect(await protocol().listPaused()).toMatchObject([{ sandboxId, kept: 'filesystem' }]);
    const booted = await it.resume(held.resumed);
    expect([booted.from, await run(sandboxId, 'cat /root/note')]).toEqual(['filesystem', 'kept\n']);
    await protocol().kill(booted);
    await nothingHeld();
  },
  120_000,
);

test('with more open files than memory can come beside, all of it comes at once', async () => {
  const sandbox = await protocol().create(it.request());
  await run(sandbox.sandboxId, holder(64, 1100));
  const before = await waitFor('the holder', () => digest(sandbox.sandboxId));
  await protocol().pause(sandbox, { memory: true });
  await it.restart();
  const resumed = await it.resume(sandbox);
  expect([resumed.from, await digest(sandbox.sandboxId)]).toEqual(['memory', before]);
  await protocol().kill(resumed);
}, 60_000);

test('with memory: false a sandbox that has its memory boots, and the memory is gone with that', async () => {
  const { sandbox } = await counting();
  const { sandboxId } = sandbox;
  const boot = await bootId(sandboxId);
  await protocol().pause(sandbox, { memory: true });
  const booted = await it.resume(sandbox, { memory: false });
  expect(booted).toMatchObject({ from: 'filesystem' });
  expect(await count(sandboxId)).toBeUndefined();
  expect(await bootId(sandboxId)).not.toBe(boot);
  await waitFor('the memory to be deleted', () => readdirSync(kept(sandboxId)).every(name => name === 'disk.img'));
  await protocol().kill(booted);
});

test('damaged memory is refused, the sandbox stays paused, and can still be booted', async () => {
  const { sandbox } = await counting();
  await protocol().pause(sandbox, { memory: true });
  await it.restart(); // its processes stand no more
  const pages = openSync(join(kept(sandbox.sandboxId), 'memory/pages-1.img'), 'r+');
  const byte = Buffer.alloc(1);
  readSync(pages, byte, 0, 1, 5000);
  writeSync(pages, Buffer.from([byte[0]! ^ 1]), 0, 1, 5000);
  closeSync(pages);
  const damaged = { code: 'internal', detail: 'sandbox_state_damaged' };
  await expect(it.resume(sandbox)).rejects.toMatchObject(damaged);
  // CRIU fails on a file that is truncated before that was detected.
  truncateSync(join(kept(sandbox.sandboxId), 'memory/pages-1.img'), 8192);
  await expect(it.resume(sandbox)).rejects.toMatchObject(damaged);
  expect(await protocol().listPaused()).toHaveLength(1);
  const booted = await it.resume(sandbox, { memory: false });
  expect(await run(sandbox.sandboxId, 'ls /root/counter.py')).toBe('/root/counter.py\n');
  await protocol().kill(booted);
});

test('a resume that fails leaves the memory as it is', async () => {
  const { sandbox, before } = await counting();
  await protocol().pause(sandbox, { memory: true });
  await it.restart();
  // The record can't be written: the last moment at which a resume can fail.
  const inTheWay = join(kept(sandbox.sandboxId), '../record.json.new');
  await Bun.$`mkdir ${inTheWay}`;
  await expect(it.resume(sandbox)).rejects.toThrow();
  await Bun.$`rmdir ${inTheWay}`;
  expect([await protocol().list(), (await protocol().listPaused()).map(({ kept }) => kept)]).toEqual([[], ['memory']]);
  const resumed = await it.resume(sandbox);
  expect([resumed.from, await count(sandbox.sandboxId)]).toEqual(['memory', before + 1]);
  await protocol().kill(resumed);
});

test('a resume without memory that fails once it has begun leaves the files alone, not memory beside them', async () => {
  const { sandbox } = await counting();
  await protocol().pause(sandbox, { memory: true });
  await it.restart();
  const folder = join(kept(sandbox.sandboxId), '..');
  const failed = it.resume(sandbox, { memory: false }).then(() => 'resumed', String);
  while (!readFileSync(join(folder, 'record.json'), 'utf8').includes('"kept":"filesystem"')) await Bun.sleep(1);
  mkdirSync(join(folder, 'record.json.new'));
  expect(await failed).not.toBe('resumed');
  rmSync(join(folder, 'record.json.new'), { recursive: true });
  expect((await protocol().listPaused()).map(({ kept }) => kept)).toEqual(['filesystem']);
  const booted = await it.resume(sandbox);
  expect(booted.from).toBe('filesystem');
  await protocol().kill(booted);
});

test('a paused sandbox whose checksums could not be written is whole all the same', async () => {
  const { sandbox, before } = await counting();
  await protocol().pause(sandbox, { memory: true });
  await it.restart();
  rmSync(join(kept(sandbox.sandboxId), 'checksums'));
  const resumed = await it.resume(sandbox);
  expect([resumed.from, await count(sandbox.sandboxId)]).toEqual(['memory', before + 1]);
  await protocol().kill(resumed);
});

test('a kill takes everything: of one that is frozen, and of one on the host’s disk', async () => {
  for (const restarts of [false, true]) {
    const { sandbox } = await counting();
    await protocol().pause(sandbox, { memory: true });
    if (restarts) await it.restart();
    await protocol().kill(sandbox);
    expect(await protocol().listPaused()).toEqual([]);
    await nothingHeld();
  }
});

test('a pause that can’t be recorded leaves the sandbox running, without a break in its counting', async () => {
  const { sandbox, before } = await counting();
  await Bun.$`mkdir ${join(kept(sandbox.sandboxId), '../record.json.new')}`;
  await expect(protocol().pause(sandbox, { memory: true })).rejects.toThrow();
  expect(await protocol().list()).toHaveLength(1);
  expect(await count(sandbox.sandboxId)).toBe(before + 1);
  expect(existsSync(join(kept(sandbox.sandboxId), 'memory'))).toBe(false);
  await protocol().kill(sandbox);
});

test('forks have the memory and the files of one moment, their own environment, and different random numbers', async () => {
  const { sandbox, before } = await counting();
  await run(sandbox.sandboxId, 'echo one > /root/file; rm /usr/bin/curl; echo mine > /etc/hosts');
  const snapshot = await protocol().snapshot({ ...sandbox, snapshotId: newUuid(), memory: true });
  expect(snapshot).toMatchObject({ kept: 'memory' });
  const [taken] = await protocol().listSnapshots();
  expect(await count(sandbox.sandboxId)).toBe(before + 1);
  await run(sandbox.sandboxId, 'echo two > /root/file');
  const image = {
    ...it.request().image,
    layers: snapshot.layers,
    ...(taken && { memorySnapshotId: taken.snapshotId }),
  };
  const forks = await Promise.all(
    [1, 2, 3].map(n => protocol().create(it.request({ image, envVars: { FORK: String(n) } }))),
  );
  for (const { sandboxId } of forks) {
    expect(await count(sandboxId)).toBe(before + 1);
    // Its own name is looked up in whatever file there is.
    expect(await run(sandboxId, 'cat /root/file /etc/hosts; ls /usr/bin/curl 2>/dev/null; ls /dev/shm')).toBe(
      `one\nmine\n127.0.1.1 ${sandboxId}\nmine\n`,
    );
  }
  expect(await Promise.all(forks.map(({ sandboxId }) => run(sandboxId, 'echo $FORK')))).toEqual(['1\n', '2\n', '3\n']);
  const random = await Promise.all(
    forks.map(({ sandboxId }) => run(sandboxId, 'head -c 16 /dev/urandom | od -An -tx1')),
  );
  expect(new Set(random).size).toBe(3);

  // What was made from it no longer needs it; nor does what is paused and resumed.
  await protocol().deleteSnapshot(taken?.snapshotId ?? '');
  expect(await protocol().listSnapshots()).toEqual([]);
  await expect(protocol().create(it.request({ image }))).rejects.toMatchObject({ code: 'not_found' });
  const [fork] = forks;
  await protocol().pause(fork!, { memory: true });
  await it.restart();
  const resumed = await it.resume(fork!);
  expect([resumed.from, await count(resumed.sandboxId)]).toEqual(['memory', before + 2]);
  await Promise.all([sandbox, resumed, ...forks].map(one => protocol().kill(one)));
  await nothingHeld();
}, 60_000);

/** Each request adds a line to a database that stays open, and returns the number of lines. */
const database = `cat > /root/database.py <<'END'
import socket, sqlite3
lines = sqlite3.connect('/root/lines.db')
lines.execute('create table lines (n integer primary key)'); lines.commit()
listener = socket.create_server(('127.0.0.1', 7000))
while True:
    connection, _ = listener.accept()
    try:
        lines.execute('insert into lines default values'); lines.commit()
        answer = lines.execute('select count(*) from lines').fetchone()[0]
    except Exception as problem:
        answer = problem
    connection.send(str(answer).encode()); connection.close()
END
(setsid python3 /root/database.py >/dev/null 2>&1 &)`;

test('a database that is open at a snapshot is written on by the source and by each who begins with it', async () => {
  const source = await protocol().create(it.request());
  await run(source.sandboxId, database);
  await waitFor('the database', () => count(source.sandboxId));
  const before = (await count(source.sandboxId)) ?? 0;
  const snapshotId = newUuid();
  const { layers } = await protocol().snapshot({ ...source, snapshotId, memory: true });
  const image = { ...it.request().image, layers, memorySnapshotId: snapshotId };
  const forks = await Promise.all([0, 1].map(() => protocol().create(it.request({ image }))));
  for (const { sandboxId } of [source, ...forks])
    expect([await count(sandboxId), await count(sandboxId)]).toEqual([before + 1, before + 2]);
  // A fork of a fork, after its memory was restored from the host's disk.
  const [fork] = forks;
  await protocol().pause(fork!, { memory: true });
  await it.restart();
  const resumed = await it.resume(fork!);
  expect(await count(resumed.sandboxId)).toBe(before + 3);
  await Promise.all([source, resumed, forks[1]!].map(sandbox => protocol().kill(sandbox)));
  await protocol().deleteSnapshot(snapshotId);
  await nothingHeld();
}, 60_000);

test('what a sandbox has written beyond a bound is shared by those who begin with it, and not copied', async () => {
  const { sandbox: source, before } = await counting();
  await run(source.sandboxId, 'head -c 280M /dev/zero | tr "\\\\0" x > /root/large; echo one > /root/file');
  const snapshotId = newUuid();
  const { layers } = await protocol().snapshot({ ...source, snapshotId, memory: true });
  expect(existsSync(join(it.dataDir, 'node/snapshots', snapshotId, 'disk.img'))).toBe(false);
  const sandbox = await protocol().create(
    it.request({ image: { ...it.request().image, layers, memorySnapshotId: snapshotId } }),
  );
  expect([
    await count(sandbox.sandboxId),
    await run(sandbox.sandboxId, 'cat /root/file; stat -c %s /root/large'),
  ]).toEqual([before + 1, `one\n${280 << 20}\n`]);
  await Promise.all([source, sandbox].map(one => protocol().kill(one)));
  await protocol().deleteSnapshot(snapshotId);
  await nothingHeld();
}, 60_000);
