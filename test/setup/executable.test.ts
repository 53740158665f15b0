import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compileExecutable } from '../../scripts/release/tree.mjs';
import { platformVersion } from '../../src/base/version.ts';
import { repository, startPlatform } from '../support/platform.ts';
import { runToEnd } from '../support/process.ts';

// The executable of a release, with what a release has beside it. `npm run release` packs it, which takes minutes.

const folder = mkdtempSync(join(tmpdir(), 'atoll-release-'));
const program = join(folder, 'bin/atoll');

beforeAll(async () => {
  mkdirSync(join(folder, 'bin'));
  await compileExecutable(repository, program);
  for (const name of ['dist', 'templates']) symlinkSync(join(repository, name), join(folder, name));
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('it says what it is, reads no .env, and refuses what it does not know', async () => {
  writeFileSync(join(folder, '.env'), 'ATOLL_PORT=1\n');
  const run = (...args: string[]) => runToEnd([program, ...args], { cwd: folder });
  expect(await run('version')).toMatchObject({ exitCode: 0, stdout: `atoll ${platformVersion}\n` });
  expect((await run('config')).stdout).toMatch(/^ATOLL_PORT +3000 +default$/m);
  expect(await run('nonsense')).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('atoll help') });
});

test('it runs the platform: every process, a sandbox, and a restart that takes it over', async () => {
  await using platform = await startPlatform({}, program);
  const created = await platform.api('POST', '/sandboxes', { templateID: 'base', timeout: 600 });
  expect(created.status).toBe(201);
  const { sandboxID } = (await created.json()) as { sandboxID: string };
  await platform.stop();
  await platform.restart();
  expect((await platform.api('GET', `/sandboxes/${sandboxID}`)).status).toBe(200);
  expect(await (await platform.api('GET', '/docs/')).text()).toContain('<h1 id="documentation">');
  expect((await platform.api('GET', '/dashboard')).headers.get('content-type')).toContain('text/html');
}, 240_000);
