import { afterAll, beforeAll, expect, test } from 'bun:test';
import { closeSync, openSync, readdirSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { newUuid } from '../../src/base/id.ts';
import type { CreateSandbox, ExecutionRef } from '../../src/protocol/node.ts';
import { startBuildNode, type BuildNode } from './support/build-node.ts';
import { serverTemplate } from './support/server-template.ts';

let builds: BuildNode;
let server: ReturnType<typeof serverTemplate>;
beforeAll(async () => {
  builds = await startBuildNode({ memory: true });
  server = serverTemplate(builds);
  const { memory } = await builds.test.node.protocol.info();
  if (!memory.kept) throw new Error(`this machine can't keep memory: ${memory.reason}`);
}, 300_000);
afterAll(() => builds[Symbol.asyncDispose]());
const protocol = () => builds.test.node.protocol;

test('sandboxes begin with the server as the build has left it, and everything else their own', async () => {
  const { built, requestFor, drawnBy, run } = server;
  const { result, log } = await built();
  expect(log).toContain('kept with its memory');
  const [one, two] = await Promise.all(
    ['red', 'blue'].map(colour =>
      protocol().create(requestFor(result, { envVars: { COLOUR: colour, E2B_SANDBOX_ID: colour } })),
    ),
  );
  const drawn = await drawnBy(one!.sandboxId);
  expect(drawn).toMatch(/^[0-9a-f]{16} hi$/);
  expect(await drawnBy(two!.sandboxId)).toBe(drawn);
  const facts =
    'echo "$COLOUR [$GREETING]"; cat /run/e2b/.E2B_SANDBOX_ID; hostname; grep -c ^BUILD_ID= /.e2b; test -s ~user/started && echo $(($(date +%s)))';
  const [ofOne = '', ofTwo = ''] = await Promise.all([one, two].map(sandbox => run(sandbox!.sandboxId, facts)));
  expect(ofOne).toMatch(new RegExp(`^red \\[\\]\\nred\\n?${one!.sandboxId}\\n1\\n\\d+\\n$`));
  expect(ofTwo).toMatch(new RegExp(`^blue \\[\\]\\nblue\\n?${two!.sandboxId}\\n1\\n\\d+\\n$`));
  expect(Math.abs(Number(ofOne.trim().split('\n').at(-1)) - Date.now() / 1000)).toBeLessThan(30);

  // It continues over a pause, and starts anew if the sandbox boots.
  let execution: ExecutionRef = one!;
  for (const memory of [true, false]) {
    await protocol().pause(execution, { memory: true });
    execution = await protocol().resume({
      ...execution,
      nextExecutionId: newUuid(),
      memory,
      network: { internetAccess: true },
      envVars: {},
      accessToken: null,
    });
    expect((await drawnBy(execution.sandboxId)) === drawn).toBe(memory);
  }
  await Promise.all([execution, two!].map(sandbox => protocol().kill(sandbox)));
}, 60_000);

test('an unchanged template has the same memory; where that can’t be used, the sandbox boots with the server answering', async () => {
  const { built, requestFor, drawnBy } = server;
  const { result } = await built();
  const again = await built();
  expect(again.log).toContain('CACHED [finalize] starting');
  expect(again.result.started?.snapshotId).toBe(result.started!.snapshotId);
  const stranger = await built({ teamId: 'team-2' });
  expect(stranger.log).toContain('CACHED [');
  expect(stranger.log).not.toContain('CACHED [finalize] starting');
  expect(stranger.result.started?.snapshotId).not.toBe(result.started!.snapshotId);
  const drawn = await (async () => {
    const sandbox = await protocol().create(requestFor(result));
    return drawnBy(sandbox.sandboxId).finally(() => protocol().kill(sandbox));
  })();
  const boots = async (changes: Partial<CreateSandbox>) => {
    const sandbox = await protocol().create(requestFor(result, changes));
    const own = await drawnBy(sandbox.sandboxId).finally(() => protocol().kill(sandbox));
    expect(own).toMatch(/^[0-9a-f]{16} hi$/);
    expect(own).not.toBe(drawn);
  };
  await boots({ resources: { ...result.started!.resources, memoryMiB: 1024 } });
  const memory = join(builds.test.dataDir, 'node/snapshots', result.started!.snapshotId);
  const pages = readdirSync(memory).find(name => /^pages-\d+\.img$/.test(name)) ?? '';
  const file = openSync(join(memory, pages), 'r+');
  writeSync(file, Buffer.from('damage'), 0, 6, 0);
  closeSync(file);
  await boots({});
  await protocol().deleteSnapshot(result.started!.snapshotId);
  await boots({});
  expect((await built()).result.started?.snapshotId).not.toBe(result.started!.snapshotId);
}, 60_000);
