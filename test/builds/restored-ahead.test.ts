import { expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { newUuid } from '../../src/base/id.ts';
import type { ExecutionRef } from '../../src/protocol/node.ts';
import { waitFor } from '../support/process.ts';
import { startBuildNode, step } from './support/build-node.ts';
import { serverTemplate } from './support/server-template.ts';

test('the server of a template that is asked for again and again waits, restored, for the next', async () => {
  await using builds = await startBuildNode({ memory: true, poolSize: 4 });
  const { protocol } = builds.test.node;
  const { built, requestFor, drawnBy, run } = serverTemplate(builds);
  const { result } = await built();
  const counts = async () => (await protocol.usage()).pool?.restored;
  const waits = (count: number) =>
    waitFor(`${count} restored sandboxes`, async () => (await counts())?.ready === count);
  const create = (name: string) =>
    protocol.create(requestFor(result, { envVars: { E2B_SANDBOX_ID: name, NAME: name } }));
  const others: ExecutionRef[] = [await create('first'), await create('second')];
  const drawn = await drawnBy(others[0]!.sandboxId);
  await waits(1);
  expect(await counts()).toMatchObject({ hits: 0, misses: 2, failures: 0 });

  const taken = await create('taken');
  expect(await counts()).toMatchObject({ hits: 1, misses: 2 });
  const { sandboxId } = taken;
  expect(await drawnBy(sandboxId)).toBe(drawn);
  const facts = 'echo "$NAME"; cat /run/e2b/.E2B_SANDBOX_ID; hostname; grep -c ^BUILD_ID= /.e2b';
  expect(await run(sandboxId, facts)).toMatch(new RegExp(`^taken\\ntaken\\n?${sandboxId}\\n1\\n$`));
  expect(readdirSync(join(builds.test.dataDir, 'node/sandboxes', sandboxId, 'kept'))).toContain('disk.img');

  // It is a sandbox like any other.
  await run(sandboxId, 'echo mine > ~/mine');
  await protocol.pause(taken, { memory: true });
  const resumed = await protocol.resume({
    ...taken,
    nextExecutionId: newUuid(),
    memory: true,
    network: { internetAccess: true },
    envVars: {},
    accessToken: null,
  });
  expect(resumed.from).toBe('memory');
  expect(await run(sandboxId, 'cat ~/mine')).toBe('mine\n');

  // The waiting ones are removed together with what they were restored from.
  await waits(2);
  await protocol.deleteSnapshot(result.started!.snapshotId);
  expect((await counts())?.ready).toBe(0);
  await Promise.all([...others, resumed].map(sandbox => protocol.kill(sandbox)));
}, 120_000);

/** Records by the time of day when it stood still, from when to when. */
const watcher = `cat > ~/watch.py <<'END'
import time
last = (time.monotonic(), time.time())
while True:
    time.sleep(0.001)
    now = (time.monotonic(), time.time())
    if now[0] - last[0] > 0.3:
        with open('/tmp/still', 'a') as file: file.write(f'{last[1] * 1000} {now[1] * 1000}\\n')
    last = now
END`;

test('nothing of what waits runs before a create makes it its own', async () => {
  await using builds = await startBuildNode({ memory: true, poolSize: 2 });
  const { protocol } = builds.test.node;
  const { built, requestFor, run } = serverTemplate(builds);
  const { result } = await built({
    steps: [step('RUN', watcher)],
    startCommand: 'python3 ~/watch.py',
    readyCommand: 'sleep 1',
  });
  const builtMs = Date.now();
  const create = () => protocol.create(requestFor(result));
  const others = [await create(), await create()];
  const counts = async () => (await protocol.usage()).pool?.restored;
  await waitFor('a restored sandbox', async () => (await counts())?.ready === 1);
  // A window: it is long enough to be noted.
  await Bun.sleep(500);
  const beganMs = Date.now();
  const taken = await create();
  expect((await counts())?.hits).toBe(1);
  const spans = async () =>
    (await run(taken.sandboxId, 'cat /tmp/still || true'))
      .split('\n')
      .filter(Boolean)
      .map(line => line.split(' ').map(Number));
  await waitFor('its note', async () => (await spans()).some(([, to = 0]) => to > beganMs));
  expect((await spans()).filter(([from = 0]) => from > builtMs && from < beganMs)).toEqual([]);
  await Promise.all([...others, taken].map(sandbox => protocol.kill(sandbox)));
}, 120_000);
