import { afterAll, beforeAll, expect, test } from 'bun:test';
import { randomUUID } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../src/base/error.ts';
import { checkpointAndRun, checkpointToPause } from '../../src/node/snapshot/checkpoint.ts';
import { openSnapshot } from '../../src/node/snapshot/restore.ts';
import { waitFor } from '../support/process.ts';
import { startMachine, type Machine, type TestSandbox } from './support/machine.ts';

let machine: Machine;
const sandboxes = new Set<TestSandbox>();

beforeAll(async () => {
  machine = await startMachine();
}, 120_000);

afterAll(async () => {
  for (const sandbox of sandboxes) await machine.kill(sandbox);
  await machine[Symbol.asyncDispose]();
}, 60_000);

/** Adds one to a number in memory and one in a file, each time it is told to. */
const adder = `#!/usr/bin/env python3
import os, socket
listener = socket.create_server(('127.0.0.1', 7000))
count = 0
while True:
    connection, _ = listener.accept()
    count += 1
    open('/root/file', 'a').write('x')
    connection.send(b'%d %d' % (count, os.stat('/root/file').st_size)); connection.close()
`;

const add = (sandbox: TestSandbox) => sandbox.run('exec 3<> /dev/tcp/127.0.0.1/7000; cat <&3');

test('three forks and their source go their own ways from one moment', async () => {
  const source = await machine.start(0);
  sandboxes.add(source);
  await source.launch('adder', adder);
  await waitFor('the adder', () => add(source).catch(() => undefined));
  expect(await add(source)).toBe('2 2');

  const directory = join(machine.snapshots, 'fork');
  await checkpointAndRun(machine.host, source.source, { directory, name: 'fork', facts: { of: 'source' } });
  expect(await add(source)).toBe('3 3');
  const snapshot = await openSnapshot(machine.host, directory);
  expect(snapshot.manifest.facts).toEqual({ of: 'source' });

  const children = await Promise.all(
    [1, 2, 3].map(async number => {
      const disk = join(machine.disks, `${randomUUID()}.img`);
      await machine.host.helper.call('disk-create', { from: join(directory, 'disk.img'), to: disk });
      const child = await machine.restore(snapshot, number, disk);
      sandboxes.add(child);
      return child;
    }),
  );
  for (const child of children) expect(await add(child)).toBe('3 3');
  expect(await Promise.all([source, ...children].map(add))).toEqual(Array(4).fill('4 4'));
  // Owners are those of the slot outside, and the same inside.
  expect(await Promise.all(children.map(child => child.run('stat -c %u:%g /root/file')))).toEqual(
    Array(3).fill('0:0\n'),
  );
  const hostIds = children.map(({ pid }) => Bun.file(`/proc/${pid}/uid_map`).text());
  expect(new Set(await Promise.all(hostIds)).size).toBe(3);

  const [first] = children;
  await machine.kill(first as TestSandbox);
  sandboxes.delete(first as TestSandbox);
  expect(await add(source)).toBe('5 5');
  // A snapshot outlives everything that was made from it.
  const disk = join(machine.disks, `${randomUUID()}.img`);
  await machine.host.helper.call('disk-create', { from: join(directory, 'disk.img'), to: disk });
  const late = await machine.restore(await openSnapshot(machine.host, directory), 1, disk);
  sandboxes.add(late);
  expect(await add(late)).toBe('3 3');
  // Its images have separate names while it is restored, and no longer.
  expect(readdirSync(machine.host.stagingDir)).toEqual([]);
  rmSync(directory, { recursive: true });
}, 120_000);

test('a sandbox that was dumped and is frozen, or can not be, goes on where it stood, or from the snapshot', async () => {
  const sandbox = await machine.start(10);
  sandboxes.add(sandbox);
  await sandbox.launch(
    'ticker',
    '#!/bin/bash\ni=0\nwhile :; do i=$((i + 1)); echo $i >> /root/ticks; sleep 0.005; done\n',
  );
  await waitFor('ticks', () => sandbox.run('cat /root/ticks').catch(() => undefined));
  const directory = join(machine.snapshots, 'still');
  const options = { directory, name: 'still', facts: {}, then: 'freeze' as const, onComplete: async () => {} };
  expect(await checkpointToPause(machine.host, sandbox.source, options)).toBe('freeze');

  sandbox.source.group.thaw();
  await sandbox.run('true');
  rmSync(directory, { recursive: true });

  expect(await checkpointToPause(machine.host, sandbox.source, options)).toBe('freeze');
  sandbox.source.group.thaw();
  await sandbox.run('true');
  rmSync(directory, { recursive: true });

  // One process waits too long for the kernel: the frozen ones must not go on beyond what was saved.
  const frozen = async () => {
    throw new AtollError('unavailable', 'a process is not frozen in time');
  };
  const slow = { ...sandbox.source, group: { ...sandbox.source.group, frozen } };
  expect(await checkpointToPause(machine.host, slow, options)).toBe('end');
  await machine.release(sandbox);
  sandboxes.delete(sandbox);
  const restored = await machine.restore(await openSnapshot(machine.host, directory), 11, sandbox.source.disk);
  sandboxes.add(restored);
  const count = async () => (await restored.run('cat /root/ticks')).trim().split('\n').map(Number);
  const before = (await count()).length;
  await waitFor('more ticks', async () => (await count()).length > before + 5);
  const ticks = await count();
  expect(ticks).toEqual(Array.from(ticks, (_, index) => index + 1));
}, 120_000);
