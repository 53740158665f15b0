import { Sandbox } from 'e2b';
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';

// What clients and their tests rely on in `base`, row by row, as a program inside sees it.
let platform: TestPlatform;
let sandbox: Sandbox;

before(async () => {
  platform = await startPlatform();
  const { url, apiKey, domain } = platform.ready;
  sandbox = await Sandbox.create({ apiUrl: url, apiKey, sandboxUrl: url, domain });
});
after(async () => {
  await sandbox?.kill();
  await platform[Symbol.asyncDispose]();
});

const run = async (command: string, user?: string) =>
  (await sandbox.commands.run(command, user === undefined ? {} : { user })).stdout.trim();

test('users: user with its own group, sudo without password; root', async () => {
  assert.match(await run('getent passwd user'), /^user:x:1000:1000:.*:\/home\/user:\/bin\/bash$/);
  assert.equal(await run('id -un; id -gn; pwd; stat -c %U:%G ~'), 'user\nuser\n/home/user\nuser:user');
  assert.match(await run('id -Gn'), /\bsudo\b/);
  assert.equal(await run('sudo -n id -u; sudo -n -u user id -un'), '0\nuser');
  assert.equal(await run('id -u; pwd', 'root'), '0\n/root');
  assert.equal(await run('touch /home/user/mine && stat -c "%U %G" /home/user/mine'), 'user user');
});

test('a login shell of bash that reads ~/.profile and ~/.bashrc', async () => {
  assert.equal(
    await run('echo $SHELL; [ -n "$BASH_VERSION" ] && shopt -q login_shell && echo login'),
    '/bin/bash\nlogin',
  );
  await sandbox.files.write('/home/user/.profile', 'export FROM_PROFILE=yes\n[ -r ~/.bashrc ] && . ~/.bashrc\n');
  assert.equal(await run('echo $FROM_PROFILE; echo "$PS1"'), 'yes\n\\w \\$');
});

test('the programs that commands, readiness checks and installs need', async () => {
  const programs =
    'bash ls mount ps pgrep ss curl tar gzip tput python python3 pip node npm npx yarn git gh gcc g++ make sudo jq unzip wget less file';
  assert.equal(await run(`for each in ${programs}; do command -v $each >/dev/null || echo missing $each; done`), '');
  assert.match(
    await run('python --version; python3 -c "import http.server, venv; print(1)"'),
    /^Python 3\.\d+\.\d+\n1$/,
  );
  assert.match(await run('node --version'), /^v20\./);
  assert.match(await run('TERM=xterm tput cols'), /^\d+$/);
  assert.match(await run('head -c 27 /etc/ssl/certs/ca-certificates.crt'), /BEGIN CERTIFICATE/);
  // A program of this name would make a failure path of clients unreachable.
  assert.equal(await run('command -v mcp-gateway || echo none'), 'none');
});

test('places where everybody may write, with attributes, watches and room', async () => {
  assert.equal(await run('stat -c %a /code /usr/local /tmp'), '777\n777\n1777');
  assert.equal(
    await run(
      'mkdir -p ~/g && npm config get prefix && echo x > /usr/local/lib/node_modules/x && rm /usr/local/lib/node_modules/x',
    ),
    '/usr/local',
  );
  assert.equal(
    await run(
      `python3 -c "import os; os.setxattr('/home/user/mine', 'user.a', b'b'); print(os.getxattr('/home/user/mine', 'user.a').decode())"`,
    ),
    'b',
  );
  assert.ok(Number(await run('cat /proc/sys/fs/inotify/max_user_watches')) >= 65_536);
  assert.ok(Number(await run('df --output=avail -B1M / | tail -n 1')) >= 1024);
  assert.ok(Number(await run('nproc')) === 2);
});

test('what says which sandbox this is', async () => {
  const { templateId } = await sandbox.getInfo();
  assert.equal(
    await run('echo $E2B_SANDBOX $E2B_SANDBOX_ID $E2B_TEMPLATE_ID'),
    `true ${sandbox.sandboxId} ${templateId}`,
  );
  assert.equal(
    await run('cat /run/e2b/.E2B_SANDBOX; echo; cat /run/e2b/.E2B_SANDBOX_ID'),
    `true\n${sandbox.sandboxId}`,
  );
  assert.match(
    await run('cat /.e2b'),
    new RegExp(`^ENV_ID=${templateId}\\nTEMPLATE_ID=${templateId}\\nBUILD_ID=[0-9a-f-]{36}$`),
  );
  assert.match(await run('cat /proc/sys/kernel/random/boot_id'), /^[0-9a-f-]{36}$/);
});

test('a program that can’t work says so from when it is installed until it is removed', async () => {
  const control =
    'Package: fake\nVersion: 1\nArchitecture: all\nMaintainer: none\nDescription: stands for a real one\n';
  await sandbox.files.write('/tmp/fake/DEBIAN/control', control);
  for (const name of ['bwrap', 'podman', 'buildah', 'docker', 'systemd-run', 'sshfs', 'chromium', 'rclone'])
    await sandbox.files.write(`/tmp/fake/usr/bin/${name}`, '#!/bin/sh\necho itself "$@"\n');
  await run(
    'chmod 755 /tmp/fake/usr/bin/*; dpkg-deb --build /tmp/fake /tmp/fake.deb && dpkg --install /tmp/fake.deb',
    'root',
  );
  const said = (command: string) => run(`${command} 2>&1 || echo "exit code $?"`);
  assert.match(await said('bwrap --bind / / true'), /^bwrap: the driver crun [^\n]* gvisor [^\n]*\nexit code 1$/);
  assert.match(
    await said('sh -c "podman run x"'),
    /^podman: neither the driver crun nor gvisor [^\n]*\nexit code 125$/,
  );
  assert.match(
    await said('buildah from scratch'),
    /^buildah: not on the driver crun; [^\n]* gvisor [^\n]*\nexit code 125$/,
  );
  assert.match(await said('docker ps'), /^docker: no daemon [^\n]* crun [^\n]* gvisor; [^\n]*\nexit code 1$/);
  assert.match(
    await said('systemd-run true'),
    /^systemd-run: systemd is not [^\n]*\(crun, gvisor\)[^\n]*\nexit code 1$/,
  );
  assert.match(
    await said('sshfs host:/ /mnt'),
    /^sshfs: no FUSE on the driver crun; [^\n]*gvisor [^\n]*\nexit code 1$/,
  );
  assert.match(await said('chromium --headless x'), /^chromium: its own sandbox [^\n]*gvisor\nexit code 1$/);
  // What needs none of it is the program's own.
  assert.equal(await said('chromium --headless --no-sandbox x'), 'itself --headless --no-sandbox x');
  assert.equal(await said('DOCKER_HOST=tcp://elsewhere docker ps'), 'itself ps');
  assert.equal(await said('rclone copy a b'), 'itself copy a b');
  assert.match(await said('rclone mount a: /mnt'), /^rclone: no FUSE/);
  for (const name of ['bwrap', 'podman', 'buildah', 'docker', 'systemd-run', 'sshfs'])
    assert.equal(await said(`${name} --version`), 'itself --version');
  await run('dpkg --remove fake', 'root');
  assert.match(await said('bwrap --version'), /command not found\nexit code 127$/);
  // Whoever looks for an engine must not be told that there is one.
  assert.equal(await said('command -v docker'), 'exit code 1');
});

test('it is a public template whose build can be looked at as any', async () => {
  const [base] = (await (await platform.api('GET', '/templates')).json()) as {
    names: string[];
    public: boolean;
    templateID: string;
    buildID: string;
    buildStatus: string;
    cpuCount: number;
    memoryMB: number;
  }[];
  assert.deepEqual(
    [base?.names, base?.public, base?.buildStatus, base?.cpuCount, base?.memoryMB],
    [['base'], true, 'ready', 2, 1024],
  );
  const { logEntries } = (await (
    await platform.api('GET', `/templates/${base?.templateID}/builds/${base?.buildID}/status`)
  ).json()) as { logEntries: { message: string }[] };
  assert.match(logEntries.at(-1)?.message ?? '', /\[finalize\] ready in/);
});

test('a definition that has changed since is built in the background of the next start; sandboxes stay as they are', async () => {
  const noteFile = join(platform.ready.dataDir, 'shipped-templates.json');
  const notes = () => JSON.parse(readFileSync(noteFile, 'utf8')) as { base: { buildId: string; key: string } };
  const { base } = notes();
  await platform.stop();
  writeFileSync(noteFile, JSON.stringify({ base: { ...base, key: 'of another release' } }));
  await platform.restart();
  await waitFor('the new build', () => notes().base.buildId !== base.buildId && notes().base.key === base.key, 60_000);
  assert.equal((await platform.api('GET', '/templates/base')).status, 200);
  assert.match(await run('cat /.e2b'), new RegExp(base.buildId));
  const { url, apiKey, domain } = platform.ready;
  const next = await Sandbox.create({ apiUrl: url, apiKey, sandboxUrl: url, domain });
  assert.match(await next.files.read('/.e2b'), new RegExp(notes().base.buildId));
  await next.kill();
});
