import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Sandbox as Desktop } from '@e2b/desktop';
import { Sandbox } from 'e2b';
import { preview } from '../support/preview.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';
import { buildMs, built } from './built.ts';

const agents = { claude: 'claude --version', codex: 'codex --version', opencode: 'opencode --version' };

let platform: TestPlatform;
before(
  async () => {
    // Each is built when a test asks for it.
    platform = await startPlatform();
    Object.assign(process.env, platform.env);
  },
  { timeout: 120_000 },
);
after(() => platform[Symbol.asyncDispose]());

describe('agents that write code', () => {
  for (const [name, command] of Object.entries(agents))
    it(`${name} runs for the user of the template, and says its version`, { timeout: buildMs }, async () => {
      const sandbox = await built(() => Sandbox.create(name));
      try {
        const { stdout } = await sandbox.commands.run(command, { timeoutMs: 240_000 });
        assert.match(stdout, /\d+\.\d+\.\d+/);
      } finally {
        await sandbox.kill();
      }
    });
});

describe('the desktop', () => {
  let desktop: Desktop;
  before(async () => (desktop = await built(() => Desktop.create({ resolution: [1024, 768], timeoutMs: 600_000 }))), {
    timeout: buildMs,
  });
  after(() => desktop?.kill());

  it('has a picture of the size that was asked for, and another one with a window', async () => {
    const empty = Buffer.from(await desktop.screenshot());
    assert.equal(empty.toString('latin1', 1, 4), 'PNG');
    assert.deepEqual([empty.readUInt32BE(16), empty.readUInt32BE(20)], [1024, 768]);
    await desktop.launch('xfce4-terminal');
    await waitFor('the window', async () => (await windows()).length > 0);
    await waitFor('another picture', async () => !Buffer.from(await desktop.screenshot()).equals(empty));
  });

  const windows = async () => desktop.getApplicationWindows('xfce4-terminal').catch(() => []);

  it('takes what is typed, and moves the mouse', async () => {
    await desktop.moveMouse(512, 384);
    await desktop.leftClick();
    assert.deepEqual(await desktop.getCursorPosition(), { x: 512, y: 384 });
    const [window = ''] = await windows();
    await desktop.commands.run(`xdotool windowactivate --sync ${window}`);
    await desktop.write('touch /tmp/typed');
    await desktop.press('enter');
    await waitFor('the file', () => desktop.files.exists('/tmp/typed'));
  });

  it('opens a file with its program also where its session begins meanwhile', async () => {
    const begin = 'xprop -root -f _DT_SAVE_MODE 8s -set _DT_SAVE_MODE xfce4';
    await desktop.files.write('/home/user/note.txt', 'text of a note');
    // A screen without a session, which appears between two of xdg-open's checks for one.
    await desktop.files.write('/home/user/bin/xdg-mime', `#!/bin/sh\n${begin}\nexec /usr/bin/xdg-mime "$@"\n`);
    await desktop.commands.run('chmod +x ~/bin/xdg-mime');
    const envs = { DISPLAY: ':7' };
    await desktop.commands.run('Xvfb :7 -screen 0 640x480x24', { background: true, timeoutMs: 0 });
    await waitFor('the screen', () => succeeds('xdpyinfo', envs));
    const open = 'PATH=~/bin:$PATH xdg-open ~/note.txt';
    await desktop.commands.run(open, { background: true, timeoutMs: 0, envs });
    await waitFor('the editor', () => succeeds('xdotool search --name note.txt', envs));
  });

  const succeeds = (command: string, envs: Record<string, string>) =>
    desktop.commands.run(command, { envs }).then(
      () => true,
      () => false,
    );

  it('is shown by noVNC on its preview URL, and VNC asks for the password', async () => {
    await desktop.stream.start({ requireAuth: true });
    assert.ok(desktop.stream.getAuthKey().length > 0);
    const url = new URL(desktop.stream.getUrl());
    const page = await waitFor('noVNC', () => preview(platform.ready.url, url.hostname, url.pathname));
    assert.match(page, /noVNC/);
    // The server speaks first (RFC 6143, 7.1.1), then lists the ways to sign in: 2 is a password.
    const { stdout } = await desktop.commands.run(
      `python3 -c "import socket; s=socket.create_connection(('127.0.0.1',5900)); print(s.recv(12)[:3].decode()); s.send(b'RFB 003.008\\n'); print(list(s.recv(8)))"`,
    );
    assert.match(stdout, /^RFB\n\[1, 2\]/);
    await desktop.stream.stop();
  });
});
