import { expect } from 'bun:test';
import { Sandbox, Template, Volume } from 'e2b';
import { counted, startCounter } from '../cluster/support/counter.ts';
import type { TestPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';

const buildTimeoutMs = 120_000;

/** How the SDK reaches a platform. */
const connectionTo = ({ ready: { apiKey, url, domain } }: TestPlatform) => ({
  apiKey,
  apiUrl: url,
  sandboxUrl: url,
  volumeApiUrl: url,
  domain,
  requestTimeoutMs: 120_000,
});

type Counted = Awaited<ReturnType<typeof counted>>;
/** Sandboxes that run, are paused with memory, or are paused with only their files, as their version left them. */
type Scene = { running: { id: string; was: Counted }; withMemory: { id: string; was: Counted }; withFiles: string };

/** Makes one of each. */
export async function makeScene(platform: TestPlatform): Promise<Scene> {
  const to = connectionTo(platform);
  const [running, withMemory, withFiles] = [
    await Sandbox.create(to),
    await Sandbox.create(to),
    await Sandbox.create(to),
  ];
  const scene = {
    running: { id: running.sandboxId, was: await startCounter(running) },
    withMemory: { id: withMemory.sandboxId, was: await startCounter(withMemory) },
    withFiles: withFiles.sandboxId,
  };
  await withFiles.files.write('/home/user/note', 'kept');
  await withMemory.pause();
  const paused = await platform.api('POST', `/sandboxes/${withFiles.sandboxId}/pause`, { memory: false });
  expect(paused.status).toBe(204);
  return scene;
}

/** Checks that all of them continue where they were, and pauses again what was paused. Answers the present scene. */
export async function expectScene(platform: TestPlatform, scene: Scene): Promise<Scene> {
  const to = connectionTo(platform);
  const running = await counted(await Sandbox.connect(scene.running.id, to));
  expect(running.pid).toBe(scene.running.was.pid);
  expect(running.count).toBeGreaterThan(scene.running.was.count);
  const withMemory = await Sandbox.connect(scene.withMemory.id, to);
  const was = await counted(withMemory);
  expect(was.pid).toBe(scene.withMemory.was.pid);
  expect(was.count).toBeGreaterThanOrEqual(scene.withMemory.was.count);
  await withMemory.pause();
  const withFiles = await Sandbox.connect(scene.withFiles, to);
  expect(await withFiles.files.read('/home/user/note')).toBe('kept');
  const paused = await platform.api('POST', `/sandboxes/${scene.withFiles}/pause`, { memory: false });
  expect(paused.status).toBe(204);
  return {
    running: { id: scene.running.id, was: running },
    withMemory: { id: scene.withMemory.id, was },
    withFiles: scene.withFiles,
  };
}

/** A template with a server that answers at once, a snapshot, and a volume with a file in it. */
type Kept = { template: string; snapshotId: string; volume: Volume };

export async function makeKept(platform: TestPlatform): Promise<Kept> {
  const to = connectionTo(platform);
  const definition = Template().fromTemplate('base').runCmd('echo built > ~/built');
  await Template.build(definition, 'of-before', to);
  const volume = await Volume.create('of-before', to);
  await volume.writeFile('/note', 'in the volume', to);
  const sandbox = await Sandbox.create('of-before', to);
  await sandbox.files.write('/home/user/note', 'in the snapshot');
  const { snapshotId } = await sandbox.createSnapshot();
  await sandbox.kill();
  return { template: 'of-before', snapshotId, volume };
}

export async function expectKept(platform: TestPlatform, { template, snapshotId, volume }: Kept): Promise<void> {
  const to = connectionTo(platform);
  const made = await Sandbox.create(template, { ...to, volumeMounts: { '/mnt/volume': volume } });
  expect((await made.commands.run('cat ~/built /mnt/volume/note')).stdout).toBe('built\nin the volume');
  await made.kill();
  const restored = await Sandbox.create(snapshotId, to);
  expect(await restored.files.read('/home/user/note')).toBe('in the snapshot');
  await restored.kill();
}

/** Starts a build that is in its second step when this resolves, and does not end. */
export async function beginBuild(platform: TestPlatform) {
  const to = connectionTo(platform);
  const definition = Template().fromTemplate('base').runCmd('echo halfway; sleep 600');
  const begun = await Template.buildInBackground(definition, 'cut-off', to);
  await waitFor(
    'the build to be in its step',
    async () => {
      const { logEntries } = await Template.getBuildStatus(begun, to);
      return logEntries.some(({ message }) => message.includes('halfway'));
    },
    buildTimeoutMs,
  );
  return begun;
}

/** Checks that a build has ended with a reason, and that another one of that name succeeds. */
export async function expectCutOff(
  platform: TestPlatform,
  begun: Awaited<ReturnType<typeof beginBuild>>,
): Promise<void> {
  const to = connectionTo(platform);
  const ended = await waitFor(
    'the build to have ended',
    async () => {
      const status = await Template.getBuildStatus(begun, to);
      return status.status !== 'building' && status;
    },
    buildTimeoutMs,
  );
  expect(ended.status).toBe('error');
  expect(ended.reason?.message).toMatch(/restarted/);
  await Template.build(Template().fromTemplate('base').runCmd('echo whole'), 'cut-off', to);
}
