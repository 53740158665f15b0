import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { runToEnd } from '../support/process.ts';

const packages = [
  ...['@mastra/e2b@0.8.0', '@mastra/core@1.71.0', '@computesdk/e2b@1.7.52', 'computesdk@4.1.4'],
  ...['ai@6.0.326', 'bash-tool@1.3.19', 'deepagents@1.14.1', 'e2b@2.51.0'],
];
const installMs = 5 * 60_000;
/** One of them first builds its own template. */
const programMs = 4 * 60_000;
const folder = mkdtempSync(join(tmpdir(), 'atoll-frameworks-'));

let platform: TestPlatform;
before(
  async () => {
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    const { exitCode, stderr } = await runToEnd(
      ['npm', 'install', '--no-audit', '--no-fund', '--ignore-scripts', ...packages],
      { cwd: folder, timeoutMs: installMs },
    );
    assert.equal(exitCode, 0, stderr);
    platform = await startPlatform();
  },
  { timeout: installMs * 2 },
);
after(async () => {
  rmSync(folder, { recursive: true, force: true });
  await platform?.[Symbol.asyncDispose]();
});

/** The output of a program that uses a framework, line by line. */
async function printed(program: string): Promise<unknown[]> {
  writeFileSync(join(folder, 'main.mjs'), `const say = value => console.log(JSON.stringify(value));\n${program}`);
  const { exitCode, stdout, stderr } = await runToEnd([process.execPath, 'main.mjs'], {
    cwd: folder,
    env: platform.env,
    timeoutMs: programMs,
  });
  assert.equal(exitCode, 0, stderr);
  return stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as unknown);
}

it('Mastra’s workspace: commands, processes, and the end', { timeout: programMs }, async () => {
  const lines = await printed(`import { E2BSandbox } from '@mastra/e2b';
const sandbox = new E2BSandbox({ timeout: 60_000, env: { GIVEN: 'yes' } });
await sandbox.start();
say((await sandbox.executeCommand('sh', ['-c', 'echo out $GIVEN'])).stdout);
say((await sandbox.executeCommand('exit 3')).exitCode);
const process = await sandbox.processes.spawn('sleep 1000');
say((await sandbox.processes.list()).some(({ pid }) => pid === process.pid));
say(await process.kill());
await sandbox.destroy();`);
  assert.deepEqual(lines, ['out yes\n', 3, true, true]);
});

it('ComputeSDK: commands, files, lists, and the end', { timeout: programMs }, async () => {
  const lines = await printed(`import { e2b } from '@computesdk/e2b';
const { sandbox: all } = e2b({ apiKey: process.env.E2B_API_KEY });
const sandbox = await all.create({ envs: { GIVEN: 'yes' } });
const { stdout, stderr, exitCode } = await sandbox.runCommand('echo out $GIVEN; echo err >&2; exit 3');
say([stdout, stderr, exitCode]);
await sandbox.filesystem.mkdir('/tmp/folder');
await sandbox.filesystem.writeFile('/tmp/folder/file.txt', 'hello');
say([await sandbox.filesystem.readFile('/tmp/folder/file.txt'), await sandbox.filesystem.exists('/tmp/none')]);
say((await sandbox.filesystem.readdir('/tmp/folder')).map(({ name }) => name));
say((await all.getById(sandbox.sandboxId))?.sandboxId === sandbox.sandboxId);
await sandbox.destroy();
say(await all.getById(sandbox.sandboxId));`);
  assert.deepEqual(lines, [['out yes\n', 'err\n', 3], ['hello', false], ['file.txt'], true, null]);
});

// npm has no package of E2B for the two below: only the few lines that their guides ask for connect them to the
// published client.

it(
  'Vercel’s AI SDK: the tools of bash-tool, called by a model that is told what to say',
  { timeout: programMs },
  async () => {
    const lines = await printed(`import { generateText, stepCountIs } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { createBashTool } from 'bash-tool';
import { Sandbox } from 'e2b';
const sandbox = await Sandbox.create();
const { tools } = await createBashTool({
  destination: '/home/user/work',
  files: { 'main.py': 'print(6 * 7)' },
  sandbox: {
    executeCommand: command =>
      sandbox.commands.run(command).catch(({ stdout, stderr, exitCode }) => ({ stdout, stderr, exitCode })),
    readFile: path => sandbox.files.read(path),
    writeFiles: files => sandbox.files.write(files.map(({ path, content }) => ({ path, data: content }))),
  },
});
const calls = [
  ['bash', { command: 'python3 main.py; pwd; echo err >&2; exit 3' }],
  ['writeFile', { path: 'out.txt', content: 'hello' }],
  ['readFile', { path: 'out.txt' }],
];
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const model = new MockLanguageModelV3({
  doGenerate: async () => {
    const [toolName, input] = calls.shift() ?? [];
    const content = toolName
      ? { type: 'tool-call', toolCallId: String(calls.length), toolName, input: JSON.stringify(input) }
      : { type: 'text', text: 'done' };
    return { content: [content], finishReason: { unified: toolName ? 'tool-calls' : 'stop' }, usage, warnings: [] };
  },
});
const { steps, text } = await generateText({ model, tools, prompt: 'run it', stopWhen: stepCountIs(9) });
say(steps.flatMap(({ toolResults }) => toolResults.map(({ output }) => output)));
say(text);
await sandbox.kill();`);
    const ran = { stdout: '42\n/home/user/work\n', stderr: 'err\n', exitCode: 3 };
    assert.deepEqual(lines, [[ran, { success: true }, { content: 'hello' }], 'done']);
  },
);

it('LangChain’s Deep Agents: commands and files', { timeout: programMs }, async () => {
  const lines = await printed(`import { BaseSandbox } from 'deepagents';
import { Sandbox } from 'e2b';
class Backend extends BaseSandbox {
  constructor(sandbox) {
    super();
    this.sandbox = sandbox;
  }
  get id() {
    return this.sandbox.sandboxId;
  }
  async execute(command) {
    const { stdout, stderr, exitCode } = await this.sandbox.commands.run(command).catch(error => error);
    return { output: stdout + stderr, exitCode, truncated: false };
  }
  async uploadFiles(files) {
    await this.sandbox.files.write(files.map(([path, content]) => ({ path, data: new Blob([content]) })));
    return files.map(([path]) => ({ path, error: null }));
  }
  async downloadFiles(paths) {
    const read = path => this.sandbox.files.read(path, { format: 'bytes' });
    return Promise.all(paths.map(async path => ({ path, content: await read(path), error: null })));
  }
}
const backend = new Backend(await Sandbox.create());
say(await backend.execute('echo out; exit 3'));
say((await backend.write('/tmp/work/a.txt', 'one\\ntwo\\n')).path);
say((await backend.edit('/tmp/work/a.txt', 'two', 'three')).occurrences);
say((await backend.read('/tmp/work/a.txt')).content);
say((await backend.ls('/tmp/work')).files.map(({ path, size }) => [path, size]));
say((await backend.glob('*.txt', '/tmp/work')).files.map(({ path }) => path));
say((await backend.grep('three', '/tmp/work')).matches);
await backend.sandbox.kill();`);
  assert.deepEqual(lines, [
    { output: 'out\n', exitCode: 3, truncated: false },
    '/tmp/work/a.txt',
    1,
    '     1\tone\n     2\tthree\n',
    [['/tmp/work/a.txt', 10]],
    ['a.txt'],
    [{ path: '/tmp/work/a.txt', line: 2, text: 'three' }],
  ]);
});
