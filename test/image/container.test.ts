import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { Sandbox } from 'e2b';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { counted, startCounter } from '../cluster/support/counter.ts';
import { holdingsOf } from '../support/leaks.ts';
import { repository } from '../support/platform.ts';
import { runToEnd, waitFor } from '../support/process.ts';
import { testUnless } from '../support/skip.ts';

// The image of a release in Docker, with the options from the guide: used from outside through the published SDK, and
// across ends of its container.

setDefaultTimeout(900_000);

const port = '3918';
const url = `http://localhost:${port}`;
const name = `atoll-image-test-${process.pid}`;
/** A first start makes the base template. */
const startTimeoutMs = 10 * 60_000;
const commandTimeoutMs = 120_000;

const docker = (...args: string[]) => runToEnd(['docker', ...args], { timeoutMs: commandTimeoutMs });
const reason =
  Bun.which('docker') === null
    ? 'there is no docker here'
    : Bun.spawnSync(['docker', 'info']).exitCode === 0
      ? undefined
      : 'no Docker answers at DOCKER_HOST';
const dockerTest = testUnless(reason);

const folder = mkdtempSync(join(tmpdir(), 'atoll-image-run-'));
const dataDir = join(folder, 'data');
let image = '';

/** The guide's options of `docker run`, without those about the container's life and place. */
function guideOptions(): string[] {
  const guide = readFileSync(join(repository, 'docs/guides/container.md'), 'utf8');
  const [, text] =
    /^docker run --detach --name atoll --restart unless-stopped ((?:.*\\\n)+) {2}atoll:/m.exec(guide) ?? [];
  if (text === undefined) throw new Error('the guide has no command that runs the image');
  return text
    .replaceAll('\\\n', ' ')
    .replaceAll("'", '§')
    .split(/ +(?=--)/)
    .flatMap(option => option.trim().split(/ (.*)/s, 2))
    .map(word => word.replaceAll('§', '').replace('/var/lib/atoll:/var/lib/atoll', `${dataDir}:${dataDir}`))
    .filter(word => word !== '');
}

const settings = { ATOLL_DATA_DIR: dataDir, ATOLL_PORT: port, ATOLL_TEMPLATES: 'none', ATOLL_FROZEN_SECONDS: '0' };
const optionsOf = () => [
  ...guideOptions(),
  ...Object.entries(settings).flatMap(([variable, value]) => ['--env', `${variable}=${value}`]),
];

/** Runs the image in the background until it serves. */
async function up(): Promise<void> {
  const started = await docker('run', '--detach', '--name', name, ...optionsOf(), image);
  if (started.exitCode !== 0) throw new Error(started.stderr);
  await serves();
}

async function serves(): Promise<void> {
  await waitFor(
    'the container to serve',
    async () => {
      const { stdout, stderr } = await docker('logs', name);
      const running = (await docker('inspect', '--format', '{{.State.Running}}', name)).stdout.trim();
      if (running !== 'true') throw new Error(`the container ended:\n${stdout}${stderr}`);
      return fetch(`${url}/health`).then(
        ({ ok }) => ok,
        () => false,
      );
    },
    startTimeoutMs,
  );
}

/** Runs a command of the image to its end, beside the other containers. */
const once = (...command: string[]) => docker('run', '--rm', ...optionsOf(), image, ...command);

const connection = () => {
  const apiKey = readFileSync(join(dataDir, 'api-key'), 'utf8').trim();
  return { apiKey, apiUrl: url, sandboxUrl: url, domain: 'localhost' };
};

beforeAll(async () => {
  if (reason !== undefined) return;
  mkdirSync('/run/atoll', { recursive: true });
  let file = process.env['ATOLL_IMAGE'];
  if (file === undefined) {
    const release = join(folder, 'release');
    const made = await runToEnd(['node', join(repository, 'scripts/release.mjs'), release], { timeoutMs: 800_000 });
    if (made.exitCode !== 0) throw new Error(made.stderr);
    file = join(release, readdirSync(release).find(entry => entry.endsWith('.oci.tar')) ?? '');
  }
  const loaded = await docker('load', '--input', file);
  image = /Loaded image: (\S+)/.exec(loaded.stdout)?.[1] ?? '';
  if (image === '') throw new Error(`docker load: ${loaded.stdout}${loaded.stderr}`);
  await up();
});

afterAll(async () => {
  if (reason === undefined) {
    await docker('rm', '--force', name);
    if (image !== '') await once('down', '--all', '--yes');
  }
  rmSync(folder, { recursive: true, force: true });
});

dockerTest('a sandbox by the SDK from outside: commands, a pause with memory, a resume', async () => {
  const sandbox = await Sandbox.create(connection());
  expect((await sandbox.commands.run('whoami')).stdout.trim()).toBe('user');
  const before = await startCounter(sandbox);
  await sandbox.pause();
  const again = await Sandbox.connect(sandbox.sandboxId, connection());
  const after = await counted(again);
  expect(after.pid).toBe(before.pid);
  expect(after.count).toBeGreaterThanOrEqual(before.count);
  await again.kill();
});

const ends: Record<string, () => Promise<void>> = {
  'stopped and started': async () => {
    await docker('stop', name);
    await docker('start', name);
    await serves();
  },
  'killed and replaced by another': async () => {
    await docker('kill', name);
    await docker('rm', name);
    await up();
  },
};

for (const [what, end] of Object.entries(ends))
  dockerTest(`sandboxes go on while their container is ${what}; paused ones resume with their memory`, async () => {
    const running = await Sandbox.create(connection());
    const paused = await Sandbox.create(connection());
    const [before, kept] = [await startCounter(running), await startCounter(paused)];
    await paused.pause();
    await end();
    const after = await counted(await Sandbox.connect(running.sandboxId, connection()));
    expect(after.pid).toBe(before.pid);
    expect(after.count).toBeGreaterThan(before.count);
    const resumed = await Sandbox.connect(paused.sandboxId, connection());
    expect((await counted(resumed)).pid).toBe(kept.pid);
    await Promise.all([running.kill(), resumed.kill()]);
  });

dockerTest('`down` in a container of its own ends everything and leaves nothing on the host', async () => {
  await Sandbox.create(connection());
  await docker('stop', name);
  expect(holdingsOf(dataDir).processes).not.toEqual([]);
  const down = await once('down', '--all', '--yes');
  expect(down.exitCode).toBe(0);
  const left = holdingsOf(dataDir);
  expect(Object.values(left).flat()).toEqual([]);
});

test('the guide names the command that these tests run', () => {
  expect(guideOptions()).toContain('--cgroupns');
  expect(guideOptions()).toContain('b 7:* rwm');
});
