import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { Sandbox, Template } from 'e2b';
import { preview } from '../support/preview.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';

/** Much is fetched and compiled; only the outcome matters. */
const programMs = 10 * 60_000;

let platform: TestPlatform;
let sandbox: Sandbox;
before(
  async () => {
    platform = await startPlatform();
    Object.assign(process.env, platform.env);
    await Template.build(Template().fromTemplate('base'), 'programs', { cpuCount: 2, memoryMB: 4096 });
    sandbox = await Sandbox.create('programs', { timeoutMs: 3_600_000 });
  },
  { timeout: programMs },
);
after(async () => {
  await sandbox?.kill();
  await platform?.[Symbol.asyncDispose]();
});

const run = async (command: string, options: { user?: 'root' | 'user'; cwd?: string } = {}) =>
  (await sandbox.commands.run(command, { timeoutMs: programMs, ...options })).stdout.trim();
const install = (packages: string) =>
  run(
    `apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends ${packages}`,
    { user: 'root' },
  );
const shown = (port: number, path: string) => preview(platform.ready.url, sandbox.getHost(port), path);
const program = (name: string, work: () => Promise<void>): void => void it(name, { timeout: programMs }, work);

program('strace, gdb and tmux, from the mirror', async () => {
  await install('strace gdb tmux');
  assert.match(await run('strace -c -f true 2>&1'), /execve/);
  await run(`printf 'int main(void) { return 42; }' > crash.c && cc -g -o crash crash.c`);
  assert.match(await run('gdb -batch -ex run ./crash 2>&1'), /exited with code 052/);
  await run(`printf '#include <stdlib.h>\\nint main(void) { abort(); }' > abort.c && cc -g -o abort abort.c`);
  // The kernel writes no core files; the debugger does.
  await run("gdb -batch -ex run -ex 'generate-core-file core' ./abort 2>&1");
  assert.match(await run('gdb -batch -ex backtrace ./abort core 2>&1'), /SIGABRT[^]*main \(\) at abort\.c:2/);
  assert.match(await run("tmux new-session -d -s one 'sleep 1000' && tmux list-sessions && tmux kill-server"), /^one:/);
});

program('what can’t be there says so in one line, and names the driver that can', async () => {
  await install('systemd bubblewrap podman buildah bindfs');
  const said = (command: string) => run(`${command} 2>&1 || true`);
  assert.match(await said('systemd-run true'), /^systemd-run: systemd is not process 1 [^\n]*$/);
  assert.match(await said('bwrap --bind / / true'), /^bwrap: the driver crun [^\n]* gvisor [^\n]*$/);
  assert.match(await said('unshare -Ur true'), /^unshare: the driver crun [^\n]* gvisor [^\n]*$/);
  assert.match(await said('podman run debian true'), /^podman: neither the driver crun nor gvisor [^\n]*$/);
  assert.match(await said('buildah from scratch'), /^buildah: not on the driver crun; [^\n]* gvisor [^\n]*$/);
  assert.match(await said('bindfs /tmp /mnt'), /^bindfs: no FUSE on the driver crun; [^\n]* gvisor [^\n]*$/);
});

program('an image is built without Docker, and read', async () => {
  await install('umoci skopeo');
  await run('umoci init --layout made && umoci new --image made:one', { user: 'root', cwd: '/srv' });
  await run('umoci unpack --image made:one bundle', { user: 'root', cwd: '/srv' });
  await run('echo built > bundle/rootfs/built', { user: 'root', cwd: '/srv' });
  await run('umoci repack --image made:one bundle && umoci config --image made:one --config.cmd /built', {
    user: 'root',
    cwd: '/srv',
  });
  const config = await run('skopeo inspect --config oci:made:one', { user: 'root', cwd: '/srv' });
  assert.deepEqual((JSON.parse(config) as { config: { Cmd: string[] } }).config.Cmd, ['/built']);
});

program('PostgreSQL as a service', async () => {
  await install('postgresql');
  await run('service postgresql start', { user: 'root' });
  const query = `su postgres -c "psql -Atc 'select count(*) from generate_series(1, 1000)'"`;
  assert.equal(await waitFor('PostgreSQL', () => run(query, { user: 'root' }).catch(() => undefined)), '1000');
});

program('Redis', async () => {
  await install('redis-server');
  await run('redis-server --daemonize yes');
  assert.equal(await waitFor('Redis', () => run('redis-cli ping').catch(() => undefined)), 'PONG');
});

program('Jupyter from PyPI, and its API on the preview URL', async () => {
  await run('python3 -m venv jupyter && jupyter/bin/pip install --quiet jupyter-server');
  await sandbox.commands.run(
    'jupyter/bin/jupyter server --no-browser --port 8888 --ServerApp.allow_remote_access=True',
    { background: true, timeoutMs: 0 },
  );
  assert.match(await waitFor('Jupyter', () => shown(8888, '/api'), programMs), /"version"/);
});

program('a Next.js development server, which shows a change', async () => {
  await run(
    'mkdir -p site/app && cd site && npm init -y && npm install --no-audit --no-fund next@15.5.6 react@19.2.0 react-dom@19.2.0',
  );
  const page = (text: string) => `export default function Page() { return <p>${text}</p>; }`;
  await sandbox.files.write(
    'site/app/layout.js',
    'export default function Layout({ children }) { return <html><body>{children}</body></html>; }',
  );
  await sandbox.files.write('site/app/page.js', page('first words'));
  await sandbox.commands.run('npx next dev --port 3000', { cwd: '/home/user/site', background: true, timeoutMs: 0 });
  const shows = (text: string) => waitFor(text, async () => (await shown(3000, '/'))?.includes(text), programMs);
  await shows('first words');
  await sandbox.files.write('site/app/page.js', page('other words'));
  await shows('other words');
});

program('chromium by Playwright', async () => {
  await install('chromium');
  await run('mkdir -p browse && cd browse && npm init -y && npm install --no-audit --no-fund playwright-core@1.56.1');
  await sandbox.files.write(
    'browse/main.mjs',
    `import { chromium } from 'playwright-core';
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', chromiumSandbox: false });
const page = await browser.newPage();
await page.setContent('<button onclick="document.title = 6 * 7">go</button>');
await page.click('button');
console.log(await page.title(), (await page.screenshot()).length > 1000);
await browser.close();`,
  );
  assert.equal(await run('node main.mjs', { cwd: '/home/user/browse' }), '42 true');
});

program('Go, Rust and Java compile and run', async () => {
  await install('golang-go cargo default-jdk-headless');
  await sandbox.files.write(
    'go/main.go',
    'package main\nimport ("fmt"; "runtime")\nfunc main() { fmt.Println("go", runtime.NumCPU()) }',
  );
  assert.equal(await run('go run main.go', { cwd: '/home/user/go' }), 'go 2');
  await run('cargo new --quiet --bin hello');
  assert.equal(await run('cargo run --quiet', { cwd: '/home/user/hello' }), 'Hello, world!');
  await sandbox.files.write(
    'Main.java',
    'class Main { public static void main(String[] a) { System.out.println("java " + Runtime.getRuntime().availableProcessors()); } }',
  );
  assert.equal(await run('java Main.java'), 'java 2');
});
