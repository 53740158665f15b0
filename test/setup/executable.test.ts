import { afterAll, beforeAll, expect, test } from 'bun:test';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildExecutable } from '../../scripts/setup/executable.mjs';
import { platformVersion } from '../../src/base/version.ts';
import { repository, startPlatform } from '../support/platform.ts';
import { partNames, partsOf } from '../parts/support/parts-of.ts';
import { runToEnd, waitFor } from '../support/process.ts';

// The executable of a release, with what a release has beside it. `npm run release` packs it, which takes minutes.

const folder = mkdtempSync(join(tmpdir(), 'atoll-release-'));
const program = join(folder, 'bin/atoll');

beforeAll(async () => {
  mkdirSync(join(folder, 'bin'));
  await buildExecutable(repository);
  cpSync(join(repository, 'dist/atoll'), program);
  for (const name of ['dist', 'templates']) symlinkSync(join(repository, name), join(folder, name));
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('it says what it is, reads no .env, and refuses what it does not know', async () => {
  writeFileSync(join(folder, '.env'), 'ATOLL_PORT=1\n');
  const run = (...args: string[]) => runToEnd([program, ...args], { cwd: folder });
  expect(await run('version')).toMatchObject({ exitCode: 0, stdout: `atoll ${platformVersion}\n` });
  expect((await run('config')).stdout).toMatch(/^ATOLL_PORT +3000 +default$/m);
  const env = { ...process.env, ATOLL_DATA_DIR: join(folder, 'none') };
  const alone = await runToEnd([program, 'node', 'list'], { cwd: folder, env });
  expect(alone.stderr).toMatch(/: start it with `(atoll up|systemctl start atoll)`/);
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

test('a part that ends while another version has come is replaced by the one that runs', async () => {
  await using platform = await startPlatform({}, program);
  const place = join(folder, 'bin/before');
  renameSync(program, place);
  try {
    writeFileSync(program, '#!/bin/sh\nexit 9\n', { mode: 0o755 });
    const before = partsOf(platform.pid());
    expect(Object.keys(before)).toHaveLength(partNames.length);
    for (const pid of Object.values(before)) process.kill(pid, 'SIGKILL');
    await waitFor('all parts to be others', () => {
      const now = partsOf(platform.pid());
      return partNames.every(name => now[name] !== undefined && now[name] !== before[name]);
    });
    await waitFor('an answer', async () => (await platform.api('GET', '/v2/sandboxes').catch(() => undefined))?.ok);
    const created = await platform.api('POST', '/sandboxes', { templateID: 'base', timeout: 600 });
    expect(created.status).toBe(201);
  } finally {
    renameSync(place, program);
  }
}, 240_000);

test('a checkout runs what was compiled for as long as no file of the source has changed, and then the source', async () => {
  const checkout = join(folder, 'checkout');
  mkdirSync(join(checkout, 'dist'), { recursive: true });
  const files = ['bin', 'src', 'package.json', 'package-lock.json', 'tsconfig.json', 'scripts'];
  for (const name of [...files, 'dist/atoll', 'dist/atoll.from'])
    cpSync(join(repository, name), join(checkout, name), { recursive: true });
  symlinkSync(join(repository, 'node_modules'), join(checkout, 'node_modules'));
  const version = (env = {}) => runToEnd([join(checkout, 'bin/atoll'), 'version'], { env: { ...process.env, ...env } });
  const answer = async () => (await version()).stdout.trim();
  /** A mark that distinguishes it from what the source says. */
  const mark = () => {
    rmSync(join(checkout, 'dist/atoll'));
    writeFileSync(join(checkout, 'dist/atoll'), '#!/bin/sh\necho compiled\n', { mode: 0o755 });
  };
  const source = readFileSync(join(repository, 'src/base/version.ts'), 'utf8').replace(
    `'${platformVersion}'`,
    "'7.8.9'",
  );
  const change = () =>
    writeFileSync(
      join(checkout, 'src/base/version.ts'),
      `/** Changed. */\nif (process.env.FAIL) throw new Error('on purpose');\n${source}`,
    );
  expect(await answer()).toBe(`atoll ${platformVersion}`);

  await buildExecutable(checkout);
  mark();
  expect(await answer()).toBe('compiled');
  change();
  expect(await answer()).toBe('atoll 7.8.9');
  await buildExecutable(checkout);
  rmSync(join(checkout, 'node_modules'));
  expect(await answer()).toBe('atoll 7.8.9');
  // Errors name source lines, whatever runs.
  expect((await version({ FAIL: '1' })).stderr).toMatch(/on purpose\n.*src\/base\/version\.ts:2:/);
  symlinkSync(join(repository, 'node_modules'), join(checkout, 'node_modules'));

  // The same text again needs no other executable, but this must be checked.
  mark();
  change();
  expect(await answer()).toBe('atoll 7.8.9');
  await buildExecutable(checkout);
  expect(await answer()).toBe('compiled');
  rmSync(join(checkout, 'src/base/version.test.ts'));
  expect(await answer()).toBe('atoll 7.8.9');
}, 120_000);
