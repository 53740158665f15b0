import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { repository, startPlatform, type TestPlatform } from '../support/platform.ts';

// The published command line, as its users use it.
const cli = join(repository, 'node_modules/@e2b/cli/dist/index.js');
const run = promisify(execFile);

let platform: TestPlatform;
let folder: string;

before(async () => {
  platform = await startPlatform();
  folder = mkdtempSync(join(tmpdir(), 'atoll-cli-'));
  writeFileSync(join(folder, 'f.txt'), 'content\n');
  writeFileSync(
    join(folder, 'e2b.Dockerfile'),
    'FROM e2bdev/base\nCOPY f.txt /opt/f.txt\nRUN cat /opt/f.txt && echo ran > /home/user/ran\n',
  );
});
after(async () => {
  rmSync(folder, { recursive: true, force: true });
  await platform[Symbol.asyncDispose]();
});

async function e2b(...args: string[]): Promise<string> {
  const { stdout, stderr } = await runIn(folder, cli, ...args);
  return stdout + stderr;
}

async function runIn(cwd: string, program: string, ...args: string[]): Promise<{ stdout: string; stderr: string }> {
  const { url, apiKey } = platform.ready;
  // Its settings and caches are kept in the home folder.
  const env = { PATH: process.env['PATH'], HOME: folder, E2B_API_KEY: apiKey, E2B_API_URL: url, E2B_SANDBOX_URL: url };
  return run(process.execPath, [program, ...args], { cwd, env, timeout: 120_000 });
}

test('a Dockerfile becomes a template, live log included', async () => {
  const output = await e2b(
    'template',
    'create',
    'cli-made',
    '--cmd',
    'sleep 1000',
    '--ready-cmd',
    'pgrep sleep',
    '--cpu-count',
    '1',
    '--memory-mb',
    '512',
  );
  assert.match(output, /content/);
  assert.match(output, /\[builder 4\/\d\] RUN cat/);
  assert.match(output, /\[builder 4\/\d\] done in \d+\.\d s/);
  assert.match(await e2b('template', 'list'), /Private\s+\S+\s+cli-made\s+1\s+512/);
});

test('it is published and private again', async () => {
  await e2b('template', 'publish', '-y', 'cli-made');
  assert.match(await e2b('template', 'list'), /Public\s+\S+\s+cli-made/);
  await e2b('template', 'unpublish', '-y', 'cli-made');
  assert.match(await e2b('template', 'list'), /Private\s+\S+\s+cli-made/);
});

test('a failing build is told with its command', async () => {
  writeFileSync(join(folder, 'e2b.Dockerfile'), 'FROM e2bdev/base\nRUN echo because && exit 3\n');
  await assert.rejects(
    e2b('template', 'create', 'cli-fails'),
    (error: Error & { stderr?: string; stdout?: string }) => {
      assert.match(`${error.stdout}${error.stderr}`, /exit status 3[\s\S]*because/);
      return true;
    },
  );
});

test('it is deleted', async () => {
  await e2b('template', 'delete', '-y', 'cli-made');
  assert.doesNotMatch(await e2b('template', 'list'), /cli-made/);
});

test('a template that the command line has begun is built as it says', async () => {
  await e2b('template', 'init', '--name', 'cli-begun', '--language', 'typescript');
  const project = join(folder, 'cli-begun');
  symlinkSync(join(repository, 'node_modules'), join(project, 'node_modules'));
  const { stdout } = await runIn(project, join(repository, 'node_modules/tsx/dist/cli.mjs'), 'build.dev.ts');
  assert.match(stdout, /Hello World E2B!/);
  assert.match(await e2b('template', 'list'), /cli-begun-dev/);
});

test('a definition of the older kind is migrated and built', async () => {
  const project = join(folder, 'older');
  mkdirSync(project);
  writeFileSync(join(project, 'e2b.Dockerfile'), 'FROM e2bdev/base\nRUN echo migrated\n');
  writeFileSync(
    join(project, 'e2b.toml'),
    'template_id = "x"\ntemplate_name = "cli-older"\ndockerfile = "e2b.Dockerfile"\nready_cmd = "true"\nstart_cmd = "sleep 1000"\n',
  );
  await e2b('template', 'migrate', '--language', 'typescript', '--path', project);
  symlinkSync(join(repository, 'node_modules'), join(project, 'node_modules'));
  const { stdout } = await runIn(project, join(repository, 'node_modules/tsx/dist/cli.mjs'), 'build.prod.ts');
  assert.match(stdout, /\bmigrated\b[\s\S]*\[finalize\] ready in/);
});
