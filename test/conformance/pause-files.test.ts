import { afterAll, beforeAll, expect, test } from 'bun:test';
import { closeSync, openSync, readdirSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { newSandboxId, newUuid } from '../../src/base/id.ts';
import type { NodeSandbox } from '../../src/protocol/node.ts';
import { waitFor } from '../support/process.ts';
import { runInSandbox } from '../node/support/run-in-sandbox.ts';
import { startTestNode, type TestNode } from '../node/support/test-node.ts';
import { describeDrivers } from './subjects.ts';

describeDrivers(subject => {
  let it: TestNode;
  beforeAll(async () => (it = await startTestNode({ driver: subject.driver })), 300_000);
  afterAll(() => it.dispose());

  const protocol = () => it.node.protocol;
  const run = async (sandboxId: string, command: string) => (await runInSandbox(protocol(), sandboxId, command)).stdout;
  const kept = (sandboxId: string) => join(it.dataDir, 'node/sandboxes', sandboxId, 'kept');
  const pauseFiles = (sandbox: NodeSandbox) => protocol().pause(sandbox, { memory: false });

  test('a pause that requires the agent is refused while that does not answer, and the sandbox runs on', async () => {
    const sandbox = await protocol().create(it.request());
    const pause = () => protocol().pause(sandbox, { memory: false, requireAgent: true });
    // Without a free descriptor it can't accept a connection; gVisor can't limit other processes.
    if (subject.driver === 'crun') {
      await run(sandbox.sandboxId, 'prlimit --nofile=0: --pid "$(pgrep -o agent)"');
      await expect(pause()).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('runs on') });
      expect(await protocol().list()).toHaveLength(1);
      await protocol().kill(sandbox);
      return;
    }
    expect(await pause()).toMatchObject({ kept: 'filesystem' });
    await protocol().kill(sandbox);
  });

  test('a sandbox paused with its files alone has them after it was booted again, and nothing else', async () => {
    const sandbox = await protocol().create(it.request({ envVars: { COLOUR: 'blue' } }));
    const { sandboxId } = sandbox;
    const look =
      'cat /proc/sys/kernel/random/boot_id; ls /run/own /dev/shm; cat /root/file; pgrep -c sleep; echo $COLOUR';
    await run(
      sandboxId,
      'mkdir -p /run/own; touch /run/own/pid /dev/shm/x; echo kept > /root/file; (setsid sleep 1000 >/dev/null 2>&1 &); until pgrep sleep > /dev/null; do :; done',
    );
    const before = (await run(sandboxId, look)).split('\n');
    expect(before.slice(1)).toEqual(['/dev/shm:', 'x', '', '/run/own:', 'pid', 'kept', '1', 'blue', '']);
    expect(await pauseFiles(sandbox)).toMatchObject({
      sandboxId,
      executionId: sandbox.executionId,
      kept: 'filesystem',
    });
    expect(await protocol().list()).toEqual([]);
    expect(await protocol().listPaused()).toHaveLength(1);
    await expect(protocol().dial(sandboxId, 49983)).rejects.toMatchObject({ code: 'not_found' });

    const nextExecutionId = newUuid();
    const resumed = await it.resume(sandbox, { nextExecutionId, envVars: { COLOUR: 'red' } });
    expect(resumed).toMatchObject({ sandboxId, executionId: nextExecutionId, from: 'filesystem' });
    expect(await protocol().listPaused()).toEqual([]);
    const after = (await run(sandboxId, look)).split('\n');
    expect(after.slice(1)).toEqual(['/dev/shm:', 'kept', '0', 'red', '']);
    expect(after[0]).toMatch(/^[0-9a-f]{8}-/);
    expect(after[0]).not.toBe(before[0]);
    await protocol().kill(resumed);
  });

  test('boot IDs are the sandbox’s own from the first boot on, not the host’s', async () => {
    const [one, two] = await Promise.all([protocol().create(it.request()), protocol().create(it.request())]);
    const ids = await Promise.all(
      [one, two].map(({ sandboxId }) => run(sandboxId, 'cat /proc/sys/kernel/random/boot_id')),
    );
    expect(new Set([...ids, await Bun.file('/proc/sys/kernel/random/boot_id').text()]).size).toBe(3);
    expect(
      (await runInSandbox(protocol(), one.sandboxId, 'echo x > /proc/sys/kernel/random/boot_id')).exitCode,
    ).not.toBe(0);
    await Promise.all([protocol().kill(one), protocol().kill(two)]);
  });

  test('what was withdrawn does not begin any more, whoever asks, nor after a restart; what has begun goes on', async () => {
    const request = it.request();
    expect(await protocol().withdraw(request)).toBe(true);
    await expect(protocol().create(request)).rejects.toMatchObject({ code: 'conflict' });

    const sandbox = await protocol().create(it.request());
    expect(await protocol().withdraw(sandbox)).toBe(false);
    await pauseFiles(sandbox);
    const late = newUuid();
    expect(await protocol().withdraw({ sandboxId: sandbox.sandboxId, executionId: late })).toBe(true);
    await it.restart();
    await expect(it.resume(sandbox, { nextExecutionId: late })).rejects.toMatchObject({ code: 'conflict' });
    const begun = newUuid();
    const [resumed, withdrawn] = await Promise.all([
      it.resume(sandbox, { nextExecutionId: begun }),
      protocol().withdraw({ sandboxId: sandbox.sandboxId, executionId: begun }),
    ]);
    expect([resumed.executionId, withdrawn]).toEqual([begun, false]);
    await protocol().kill(resumed);
  });

  test('pausing, resuming and killing may be asked for twice, also at the same time', async () => {
    const sandbox = await protocol().create(it.request());
    const pauses = await Promise.all([pauseFiles(sandbox), pauseFiles(sandbox)]);
    expect(await pauseFiles(sandbox)).toEqual(pauses[0]);
    expect(pauses[0]).toEqual(pauses[1]);
    const nextExecutionId = newUuid();
    const resumes = await Promise.all([
      it.resume(sandbox, { nextExecutionId }),
      it.resume(sandbox, { nextExecutionId }),
    ]);
    expect(await it.resume(sandbox, { nextExecutionId })).toEqual(resumes[0]);
    expect(resumes[0]).toEqual(resumes[1]);
    expect(await protocol().list()).toHaveLength(1);
    // The first execution is over: calls that still name it change nothing.
    await expect(it.resume(sandbox)).rejects.toMatchObject({ code: 'not_found' });
    await expect(pauseFiles(sandbox)).rejects.toMatchObject({ code: 'not_found' });
    await protocol().kill(sandbox);
    expect(await protocol().list()).toHaveLength(1);
    await Promise.all([protocol().kill(resumes[0]), protocol().kill(resumes[0])]);
    expect(await protocol().list()).toEqual([]);
  });

  test('a kill during a pause or a resume waits for it and leaves nothing', async () => {
    const sandboxes = await Promise.all(Array.from({ length: 2 }, () => protocol().create(it.request())));
    const [one, two] = sandboxes as [NodeSandbox, NodeSandbox];
    await Promise.all([pauseFiles(one), protocol().kill(one)]);
    await pauseFiles(two);
    const nextExecutionId = newUuid();
    const resuming = it.resume(two, { nextExecutionId });
    await Promise.all([protocol().kill({ ...two, executionId: nextExecutionId }), protocol().kill(two), resuming]);
    expect([await protocol().list(), await protocol().listPaused()]).toEqual([[], []]);
    await waitFor('the files to be gone', () =>
      sandboxes.every(({ sandboxId }) => !readdirSync(join(it.dataDir, 'node/sandboxes')).includes(sandboxId)),
    );
  });

  test('a paused sandbox outlives a restart of the node, and a kill removes all of it', async () => {
    const sandbox = await protocol().create(it.request());
    await run(sandbox.sandboxId, 'echo kept > /root/file');
    const paused = await pauseFiles(sandbox);
    await it.restart();
    expect(it.node.found).toEqual({ adopted: 0, removed: 0, paused: 1 });
    expect(await protocol().listPaused()).toEqual([paused]);
    const resumed = await it.resume(sandbox);
    expect(await run(sandbox.sandboxId, 'cat /root/file')).toBe('kept\n');
    const again = await pauseFiles(resumed);
    await protocol().kill(again);
    expect(await protocol().listPaused()).toEqual([]);
    expect(readdirSync(join(it.dataDir, 'node/sandboxes'))).toEqual([]);
  });

  test('what was changed while a sandbox was paused is refused, and the sandbox stays paused', async () => {
    const sandbox = await protocol().create(it.request());
    await pauseFiles(sandbox);
    const disk = openSync(join(kept(sandbox.sandboxId), 'disk.img'), 'r+');
    writeSync(disk, 'x', 1024 + 0x3a);
    closeSync(disk);
    await expect(it.resume(sandbox)).rejects.toMatchObject({ code: 'internal', detail: 'sandbox_state_damaged' });
    expect(await protocol().listPaused()).toHaveLength(1);
    await protocol().kill(sandbox);
  });

  test('a pause that can’t be done leaves the sandbox running', async () => {
    const sandbox = await protocol().create(it.request());
    await run(sandbox.sandboxId, '(setsid sh -c "while :; do date +%N > /root/tick; done" >/dev/null 2>&1 &)');
    // A directory in place of the record's file.
    await Bun.$`mkdir ${join(kept(sandbox.sandboxId), '../record.json.new')}`;
    await expect(pauseFiles(sandbox)).rejects.toThrow();
    expect(await protocol().list()).toEqual([sandbox]);
    const [first, second] = (await run(sandbox.sandboxId, 'cat /root/tick; sleep 0.1; cat /root/tick'))
      .trim()
      .split('\n');
    expect(first).not.toBe(second);
    await protocol().kill(sandbox);
  });

  test('a snapshot of the files is a layer that others are made from, also after its source is gone', async () => {
    const source = await protocol().create(it.request());
    await run(source.sandboxId, 'echo one > /root/file; rm /usr/bin/curl; mkdir /run/own');
    const request = { ...source, snapshotId: newUuid(), memory: false };
    const snapshot = await protocol().snapshot(request);
    expect(snapshot).toEqual({
      kept: 'filesystem',
      driver: subject.driver,
      layers: [it.base, expect.stringMatching(/^sha256:/)],
    });
    // It runs on, and what it does from now on is its own.
    expect(await run(source.sandboxId, 'cat /root/file; echo two > /root/file; cat /root/file')).toBe('one\ntwo\n');
    await protocol().kill(source);
    const image = { ...it.request().image, layers: snapshot.layers };
    const children = await Promise.all([
      protocol().create(it.request({ image })),
      protocol().create(it.request({ image })),
    ]);
    for (const { sandboxId } of children) {
      expect(await run(sandboxId, 'cat /root/file; ls /usr/bin/curl /run/own 2>/dev/null; cat /etc/hostname')).toBe(
        `one\n${sandboxId}\n`,
      );
    }
    const again = await protocol().snapshot({ ...children[0], snapshotId: newUuid(), memory: false });
    expect(again.layers.slice(0, 2)).toEqual(snapshot.layers);
    await Promise.all(children.map(child => protocol().kill(child)));
    expect(readdirSync(join(it.dataDir, 'node/snapshots'))).toEqual([]);
  });

  test('a sandbox ID is used once, running or paused', async () => {
    const sandboxId = newSandboxId();
    const sandbox = await protocol().create(it.request({ sandboxId }));
    await pauseFiles(sandbox);
    await expect(protocol().create(it.request({ sandboxId }))).rejects.toMatchObject({ code: 'conflict' });
    await protocol().kill(sandbox);
  });
});
