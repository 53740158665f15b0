import { Sandbox, Template, waitForPort } from 'e2b';
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

// The published SDK, as its users use it.
let platform: TestPlatform;
let context: string;
let connection: { apiUrl: string; apiKey: string; sandboxUrl: string; domain: string };

before(async () => {
  platform = await startPlatform();
  const { url, apiKey, domain } = platform.ready;
  connection = { apiUrl: url, apiKey, sandboxUrl: url, domain };
  context = mkdtempSync(join(tmpdir(), 'atoll-context-'));
  mkdirSync(join(context, 'src/deep'), { recursive: true });
  writeFileSync(join(context, 'src/a.txt'), 'alpha');
  writeFileSync(join(context, 'src/deep/run.sh'), '#!/bin/sh\necho run', { mode: 0o755 });
  writeFileSync(join(context, 'src/skip.log'), 'not this');
  writeFileSync(join(context, '.dockerignore'), '**/*.log\n');
  symlinkSync('a.txt', join(context, 'src/link'));
});
after(async () => {
  rmSync(context, { recursive: true, force: true });
  await platform[Symbol.asyncDispose]();
});

const template = () => Template({ fileContextPath: context });
const run = async (name: string, command: string) => {
  const sandbox = await Sandbox.create(name, connection);
  try {
    return await sandbox.commands.run(command);
  } finally {
    await sandbox.kill();
  }
};

test('files, steps and a start command become a sandbox with its server running', async () => {
  const messages: string[] = [];
  const definition = template()
    .fromTemplate('base')
    .setEnvs({ FOO: 'bar' })
    .copy('src', '/app/src')
    .setWorkdir('/app')
    .runCmd(['echo "foo is $FOO"', 'ls -R src'])
    .setStartCmd('python3 -m http.server 8000', waitForPort(8000));
  const built = await Template.build(definition, 'sdk-files:v1', {
    ...connection,
    cpuCount: 2,
    memoryMB: 512,
    onBuildLogs: entry => messages.push(entry.message),
  });
  assert.ok(
    messages.some(message => message.includes('foo is bar')),
    messages.join('\n'),
  );
  assert.ok(messages.some(message => /\[builder \d\/\d\] COPY/.test(message)));
  const { stdout } = await run(
    'sdk-files:v1',
    'pwd; cat src/a.txt src/link; src/deep/run.sh; ls src; curl -s localhost:8000/src/a.txt; echo "[$FOO]"',
  );
  assert.equal(stdout, '/app\nalphaalpharun\na.txt\ndeep\nlink\nalpha[]\n');
  assert.deepEqual(built.tags, ['v1']);
});

test('a template copies twenty folders, which the SDK uploads all at once', async () => {
  const folders = Array.from({ length: 20 }, (_, index) => `many/folder-${index}`);
  for (const folder of folders) {
    mkdirSync(join(context, folder), { recursive: true });
    writeFileSync(join(context, folder, 'bytes'), randomBytes(4 * 2 ** 20));
  }
  let definition = template().fromTemplate('base').copy('src', '/app/src');
  for (const folder of folders) definition = definition.copy(folder, `/app/${folder}`);
  await Template.build(definition, 'sdk-many-files', connection);
  assert.equal((await run('sdk-many-files', 'ls /app/many | wc -l')).stdout, '20\n');
});

test('an unchanged definition builds from the cache, skipCache from its place on', async () => {
  const definition = (skip: boolean) => {
    const begun = template().fromTemplate('base').runCmd('date +%N > /tmp/first');
    return (skip ? begun.skipCache() : begun).runCmd('date +%N > /tmp/second');
  };
  const logOf = async (skip: boolean) => {
    const messages: string[] = [];
    await Template.build(definition(skip), 'sdk-cache', {
      ...connection,
      onBuildLogs: entry => messages.push(entry.message),
    });
    return messages.filter(message => message.includes('RUN')).map(message => message.includes('CACHED'));
  };
  await logOf(false);
  assert.deepEqual(await logOf(false), [true, true]);
  assert.deepEqual(await logOf(true), [true, false]);
});

test('a failure names the command and the line of the definition', async () => {
  const definition = template().fromTemplate('base').runCmd('echo the reason && exit 3');
  await assert.rejects(Template.build(definition, 'sdk-fails', connection), (error: Error) => {
    assert.match(error.message, /failed to run command 'echo the reason && exit 3': exit status 3\nthe reason/);
    assert.match(error.stack ?? '', /sdk-template\.node\.ts/);
    return true;
  });
  const stranger = template().fromTemplate('base').runCmd('whoami', { user: 'stranger' });
  await assert.rejects(
    Template.build(stranger, 'sdk-fails', connection),
    /failed to run command 'whoami': command failed: unauthenticated: invalid username: 'stranger'/,
  );
});

test('the default image is the base template, and helpers of the builder work', async () => {
  const definition = template()
    .fromBaseImage()
    .makeDir('/made', { user: 'root' })
    .copy('src/a.txt', '/made/renamed.txt', { user: 'root', mode: 0o600 })
    .rename('/made/renamed.txt', '/made/moved.txt', { user: 'root' })
    .makeSymlink('/made/moved.txt', '/made/link', { user: 'root' })
    .remove('/made/nothing', { force: true, user: 'root' })
    .setUser('root');
  await Template.build(definition, 'sdk-helpers', connection);
  const { stdout } = await run('sdk-helpers', 'id -un; stat -c "%a %U %N" /made/moved.txt /made/link');
  assert.equal(stdout, "root\n600 root '/made/moved.txt'\n777 root '/made/link' -> '/made/moved.txt'\n");
});

test('a Dockerfile is built by its instructions', async () => {
  const dockerfile =
    'FROM e2bdev/base\nWORKDIR /work\nENV WHO=docker\nCOPY src/a.txt .\nRUN echo "$WHO" > who.txt\nUSER user\n';
  await Template.build(template().fromDockerfile(dockerfile), 'sdk-dockerfile', connection);
  assert.equal((await run('sdk-dockerfile', 'id -un; pwd; cat a.txt who.txt')).stdout, 'user\n/work\nalphadocker\n');
});

test('programs are found where PATH says, in steps and in the start command', async () => {
  const script = '#!/bin/sh\\nexec sleep 600\\n';
  const definition = template()
    .fromTemplate('base')
    .runCmd([`mkdir -p ~/own/bin`, `printf '${script}' > ~/own/bin/serve-it`, 'chmod +x ~/own/bin/serve-it'])
    .setEnvs({ PATH: '/home/user/own/bin:$PATH' })
    .runCmd('command -v serve-it > /tmp/which')
    .setStartCmd('serve-it', 'pgrep sleep');
  await Template.build(definition, 'sdk-path', connection);
  assert.equal((await run('sdk-path', 'cat /tmp/which; pgrep -c sleep')).stdout, '/home/user/own/bin/serve-it\n1\n');
});

test('a template is built on another, and keeps its state', async () => {
  await Template.build(
    template().fromTemplate('base').setWorkdir('/parent').setEnvs({ P: '1' }).runCmd('echo p > here'),
    'sdk-parent',
    connection,
  );
  await Template.build(
    template().fromTemplate('sdk-parent').runCmd('cp here there; echo $P >> there'),
    'sdk-child',
    connection,
  );
  assert.equal((await run('sdk-child', 'cat there')).stdout, 'p\n1\n');
});

test('names and tags', async () => {
  await Template.build(template().fromTemplate('base').runCmd('echo 1 > /tmp/v'), 'sdk-tags', {
    ...connection,
    tags: ['one', 'stable'],
  });
  assert.equal(await Template.exists('sdk-tags', connection), true);
  assert.equal(await Template.exists('sdk-nothing', connection), false);
  await Template.build(template().fromTemplate('base').runCmd('echo 2 > /tmp/v'), 'sdk-tags:two', connection);
  assert.equal((await run('sdk-tags:stable', 'cat /tmp/v')).stdout, '1\n');
  await Template.assignTags('sdk-tags:two', 'stable', connection);
  assert.equal((await run('sdk-tags:stable', 'cat /tmp/v')).stdout, '2\n');
  assert.deepEqual((await Template.getTags('sdk-tags', connection)).map(({ tag }) => tag).sort(), [
    'one',
    'stable',
    'two',
  ]);
  await Template.removeTags('sdk-tags', ['one'], connection);
  await assert.rejects(Sandbox.create('sdk-tags:one', connection));
});

test('a build in the background is asked for its state, log entries once each', async () => {
  const begun = await Template.buildInBackground(
    template().fromTemplate('base').runCmd('for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.1; done'),
    'sdk-background',
    connection,
  );
  const seen: string[] = [];
  for (;;) {
    const status = await Template.getBuildStatus(begun, { ...connection, logsOffset: seen.length });
    seen.push(...status.logEntries.map(entry => entry.message));
    assert.notEqual(status.status, 'waiting');
    if (status.status !== 'building' && status.logEntries.length === 0) break;
  }
  assert.deepEqual(
    seen.filter(message => message.startsWith('line')),
    [1, 2, 3, 4, 5, 6, 7, 8].map(number => `line ${number}`),
  );
});

test('a template with sandboxes is not deleted; without, it is', async () => {
  await Template.build(template().fromTemplate('base').runCmd('true'), 'sdk-deleted', connection);
  const sandbox = await Sandbox.create('sdk-deleted', connection);
  assert.equal((await platform.api('DELETE', '/templates/sdk-deleted')).status, 400);
  await sandbox.kill();
  assert.equal((await platform.api('DELETE', '/templates/sdk-deleted')).status, 204);
  assert.equal(await Template.exists('sdk-deleted', connection), false);
});

test('a Dockerfile is rebuilt by its own route', async () => {
  await Template.build(template().fromTemplate('base').runCmd('true'), 'sdk-rebuilt', connection);
  const dockerfile =
    'FROM e2bdev/base AS first\nRUN echo one > /one\nFROM e2bdev/base\nCOPY --from=first /one /two\nCMD ["sleep", "600"]';
  const answer = await fetch(`${platform.ready.url}/templates/sdk-rebuilt`, {
    method: 'POST',
    headers: { 'x-api-key': platform.ready.apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ dockerfile, readyCmd: 'pgrep sleep' }),
  });
  assert.equal(answer.status, 202);
  const { templateID, buildID } = (await answer.json()) as { templateID: string; buildID: string };
  for (let status = 'building'; status !== 'ready';) {
    const news = (await (await platform.api('GET', `/templates/${templateID}/builds/${buildID}/status`)).json()) as {
      status: string;
      reason?: { message: string };
    };
    assert.notEqual(news.status, 'error', news.reason?.message ?? 'no reason');
    status = news.status;
    await new Promise(resolve => setTimeout(resolve, 100));
  }
  assert.equal((await run('sdk-rebuilt', 'cat /two; pgrep -c sleep')).stdout, 'one\n1\n');
});
