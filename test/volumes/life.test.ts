import { afterAll, beforeAll, expect, test } from 'bun:test';
import { newSandboxId, newUuid } from '../../src/base/id.ts';
import type { CreateSandbox, NodeSandbox } from '../../src/protocol/node.ts';
import { runInSandbox } from '../node/support/run-in-sandbox.ts';
import { startTestNode, type TestNode } from '../node/support/test-node.ts';
import { waitFor } from '../support/process.ts';

// Volumes through everything that can happen to a sandbox.

let it: TestNode;
const shared = newUuid();
const other = newUuid();
beforeAll(async () => {
  it = await startTestNode({ memory: true });
  for (const volumeId of [shared, other]) await protocol().volumes.create(volumeId, 64);
}, 300_000);
afterAll(() => it.dispose());

const protocol = () => it.node.protocol;
const mounts = [
  { volumeId: other, path: '/srv/other' },
  { volumeId: shared, path: '/data' },
  { volumeId: shared, path: '/data/again' },
];
const create = (changes: Partial<CreateSandbox> = {}) => protocol().create(it.request({ volumes: mounts, ...changes }));
const inside = async ({ sandboxId }: { sandboxId: string }, command: string, user = 'root') => {
  const { exitCode, stdout, stderr } = await runInSandbox(protocol(), sandboxId, command, user);
  if (exitCode !== 0) throw new Error(`${command}: ${stderr}`);
  return stdout.trim();
};
const volumeMounts = (sandbox: NodeSandbox) => inside(sandbox, "grep -c ' /dev/loop' /proc/self/mountinfo");
const flags = (sandbox: NodeSandbox) => inside(sandbox, 'grep " /data " /proc/self/mountinfo | cut -d" " -f6');

/** A process that keeps a file of the volume open and writes to it on command. */
async function furnish(sandbox: NodeSandbox) {
  await inside(
    sandbox,
    'echo one > /data/log; cd /data; (exec 9>>/data/log 8</data/log; while :; do if [ -e /tmp/go ]; then rm /tmp/go; echo "$0 $(pwd)" >&9; fi; sleep 0.02; done) >/dev/null 2>&1 & echo $! > /tmp/pid',
  );
}
async function poke(sandbox: NodeSandbox) {
  await inside(sandbox, 'touch /tmp/go; while [ -e /tmp/go ]; do sleep 0.01; done; sleep 0.1; kill -0 $(cat /tmp/pid)');
}

test('two sandboxes share a volume, and own in it what is theirs', async () => {
  const [one, two] = await Promise.all([create(), create()]);
  await inside(one, 'echo from one > /data/note', 'user');
  expect(await inside(two, 'cat /data/note; stat -c %U /data/note; cat /data/again/note')).toBe(
    'from one\nuser\nfrom one',
  );
  expect(await inside(two, 'echo more >> /data/note; cat /data/note', 'user')).toBe('from one\nmore');
  expect(await inside(one, 'ls /srv/other | wc -l')).toBe('0');
  expect(await volumeMounts(one)).toBe('3');
  await Promise.all([one, two].map(sandbox => protocol().kill(sandbox)));
});

test('processes with open files and their directory in a volume go on after a pause, whatever others wrote meanwhile', async () => {
  const sandbox = await create();
  const witness = await create();
  await furnish(sandbox);
  const before = await flags(sandbox);
  const paused = await protocol().pause(sandbox, { memory: true });
  await expect(protocol().volumes.remove(shared)).rejects.toMatchObject({ code: 'conflict' });
  await inside(witness, 'echo from the witness >> /data/log');
  // After a restart no process of it is left: it is brought back from the disk.
  await it.restart();
  const resumed = await it.resume(paused);
  expect(resumed.from).toBe('memory');
  await poke(resumed);
  expect(await inside(witness, 'cat /data/log')).toMatch(/^one\nfrom the witness\n.* \/data$/);
  expect(await volumeMounts(resumed)).toBe('3');
  expect(await flags(resumed)).toBe(before);
  await Promise.all([resumed, witness].map(each => protocol().kill(each)));
}, 60_000);

test('where an open file of a volume was deleted meanwhile, the resume says so and leaves the choice to boot', async () => {
  const sandbox = await create();
  const witness = await create();
  await furnish(sandbox);
  const paused = await protocol().pause(sandbox, { memory: true });
  await it.restart();
  await inside(witness, 'rm /data/log');
  await expect(it.resume(paused)).rejects.toMatchObject({
    code: 'conflict',
    detail: 'sandbox_volume_changed',
    message: expect.stringMatching(/data\/log.*others may have changed what it has open in \/srv\/other, \/data, /),
  });
  expect(await protocol().listPaused()).toMatchObject([{ sandboxId: sandbox.sandboxId }]);
  const booted = await it.resume(paused, { memory: false });
  expect(await volumeMounts(booted)).toBe('3');
  await Promise.all([booted, witness].map(each => protocol().kill(each)));
}, 60_000);

test('a sandbox that boots from its files has its volumes', async () => {
  const sandbox = await create();
  await inside(sandbox, 'echo kept > /data/kept; echo own > /root/own');
  const paused = await protocol().pause(sandbox, { memory: false });
  const resumed = await it.resume(paused);
  expect(resumed.from).toBe('filesystem');
  expect(await inside(resumed, 'cat /data/kept /root/own')).toBe('kept\nown');
  expect(await volumeMounts(resumed)).toBe('3');
  await protocol().kill(resumed);
}, 60_000);

test('what a volume takes grows with what is in it, and shrinks again', async () => {
  const takes = async () => (await protocol().volumes.taken([other, newUuid(), 'nonsense']))[other] ?? 0;
  const sandbox = await create({ volumes: [{ volumeId: other, path: '/data' }] });
  const before = await takes();
  await inside(sandbox, 'head -c 20000000 /dev/urandom > /data/much && sync');
  expect(await takes()).toBeGreaterThan(before + 19_000_000);
  await inside(sandbox, 'rm /data/much && sync');
  // The kernel returns blocks once it has finished writing.
  await waitFor('the blocks to be given back', async () => (await takes()) < before + 10_000_000);
  expect(Object.keys(await protocol().volumes.taken([newUuid(), 'nonsense']))).toEqual([]);
  await protocol().kill(sandbox);
}, 60_000);

test('forks have the volumes of their source, and one more where that is asked for', async () => {
  const source = await create({ volumes: [{ volumeId: shared, path: '/data' }] });
  await furnish(source);
  const snapshotId = newUuid();
  const { layers } = await protocol().snapshot({ ...source, snapshotId, memory: true });
  const image = { ...it.request().image, layers, memorySnapshotId: snapshotId };
  const volumes = [
    { volumeId: other, path: '/extra' },
    { volumeId: shared, path: '/data' },
  ];
  const forks = await Promise.all([1, 2].map(() => create({ sandboxId: newSandboxId(), image, volumes })));
  for (const fork of forks) {
    await poke(fork);
    await inside(fork, 'cat /tmp/pid >> /extra/seen');
  }
  await poke(source);
  expect((await inside(source, 'cat /data/log')).split('\n')).toHaveLength(4);
  expect((await inside(forks[0] as NodeSandbox, 'cat /extra/seen')).split('\n')).toHaveLength(2);
  await Promise.all([source, ...forks].map(each => protocol().kill(each)));
  await protocol().deleteSnapshot(snapshotId);
}, 60_000);

test('a place where nothing can be mounted is refused, and leaves nothing', async () => {
  for (const path of ['/bin/volume', '/etc/passwd', '/etc/passwd/below']) {
    await expect(create({ volumes: [{ volumeId: shared, path }] })).rejects.toMatchObject({ code: 'invalid' });
  }
  await expect(create({ volumes: [{ volumeId: newUuid(), path: '/data' }] })).rejects.toMatchObject({
    code: 'not_found',
  });
  expect(await protocol().list()).toEqual([]);
});
