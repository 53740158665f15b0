import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { Sandbox, Template } from 'e2b';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

/** Packages are fetched, and gVisor is slow. */
const programMs = 10 * 60_000;

// Programs for which messages of crun's sandboxes refer people to gVisor.
let platform: TestPlatform;
let sandbox: Sandbox;
before(
  async () => {
    platform = await startPlatform({ ATOLL_TEMPLATE_DRIVERS: 'contained=gvisor' });
    Object.assign(process.env, platform.env);
    const packages = 'bubblewrap bindfs buildah busybox-static chromium';
    await Template.build(
      Template().fromTemplate('base').aptInstall(packages.split(' '), { noInstallRecommends: true }),
      'contained',
      { cpuCount: 2, memoryMB: 4096 },
    );
    sandbox = await Sandbox.create('contained', { timeoutMs: 3_600_000 });
    await sandbox.commands.run('uname -r', { onStdout: data => assert.equal(data, '4.4.0\n') });
  },
  { timeout: programMs },
);
after(async () => {
  await sandbox?.kill();
  await platform?.[Symbol.asyncDispose]();
});

const run = async (command: string, options: { user?: 'root' | 'user'; cwd?: string } = {}) =>
  (await sandbox.commands.run(command, { timeoutMs: programMs, ...options })).stdout.trim();
const program = (name: string, work: () => Promise<void>): void => void it(name, { timeout: programMs }, work);

program('bwrap, with a file system and processes of its own', async () => {
  const inside = 'bwrap --ro-bind / / --tmpfs /tmp --dev /dev --proc /proc --unshare-pid';
  await run('touch /tmp/outside');
  assert.equal(
    await run(
      `unshare -Urm ${inside} sh -c 'ls -A /tmp; ls -d /proc/[0-9]* | wc -l; touch /etc/x || echo closed' 2>&1 | tail -n 1`,
    ),
    'closed',
  );
  assert.equal(await run(`unshare -Urm ${inside} ls -A /tmp`), '');
});

program('a FUSE file system', async () => {
  await run('mkdir -p source point && echo read > source/file');
  assert.equal(
    await run("unshare -Urm sh -c 'bindfs source point && grep -c fuse /proc/mounts && cat point/file'"),
    '1\nread',
  );
});

program('buildah makes an image, with a step that runs', async () => {
  await run('mkdir -p /root/image && cp /bin/busybox /root/image/', { user: 'root' });
  await sandbox.files.write(
    '/root/image/Dockerfile',
    'FROM scratch\nCOPY busybox /bin/sh\nRUN ["/bin/sh", "-c", "echo built > /made"]\n',
    { user: 'root' },
  );
  const buildah = 'unshare -Urm buildah --storage-driver vfs';
  await run(`${buildah} build --isolation chroot -t made . 2>&1`, { user: 'root', cwd: '/root/image' });
  await run(`${buildah} push made oci:/root/pushed:one`, { user: 'root' });
  assert.match(await run('cat /root/pushed/index.json', { user: 'root' }), /"digest":"sha256:/);
});

program('chromium with its own sandbox', async () => {
  const page = 'data:text/html,<title>contained</title><p>shown</p>';
  assert.match(await run(`chromium --headless --dump-dom '${page}' 2>/dev/null`), /<p>shown<\/p>/);
});
