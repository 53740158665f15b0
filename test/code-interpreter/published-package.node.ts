import { Sandbox } from '@e2b/code-interpreter';
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

// The template as the platform builds it by itself after its start, used through the published code interpreter.

let platform: TestPlatform;
let sandbox: Sandbox;
let connection: { apiUrl: string; apiKey: string; sandboxUrl: string; domain: string };

before(async () => {
  letTimersGo();
  platform = await startPlatform({ ATOLL_TEMPLATES: 'code-interpreter-v1' });
  const { url, apiKey, domain } = platform.ready;
  assert.deepEqual(platform.ready.building, ['code-interpreter-v1']);
  connection = { apiUrl: url, apiKey, sandboxUrl: url, domain };
  sandbox = await createWhenBuilt();
  // The package has no option for its own port: it would need names in the DNS.
  Object.defineProperty(sandbox, 'jupyterUrl', { get: () => url });
});
after(async () => {
  await sandbox?.kill();
  await platform[Symbol.asyncDispose]();
});

/** The package does not clear the timers of its requests: they would keep this process for a minute after the last test. */
function letTimersGo(): void {
  const { setTimeout: start } = globalThis;
  const letGo = (...args: Parameters<typeof start>) => start(...args).unref();
  globalThis.setTimeout = Object.assign(letGo, start);
}

/** A create waits for the template's build, but not longer than clients wait; the first build of a machine downloads packages. */
async function createWhenBuilt(): Promise<Sandbox> {
  for (;;) {
    try {
      return await Sandbox.create('code-interpreter-v1', connection);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.includes('still being built')) throw error;
    }
  }
}

test('the last value, what is printed, and the state of a context', async () => {
  const lines: string[] = [];
  const first = await sandbox.runCode('import sys\nx = 40\nprint("out")\nprint("err", file=sys.stderr)\nx + 2', { onStdout: message => void lines.push(message.line) });
  assert.equal(first.text, '42');
  assert.deepEqual(first.logs, { stdout: ['out\n'], stderr: ['err\n'] });
  assert.deepEqual(lines, ['out\n']);
  const second = await sandbox.runCode('x += 1\nf"{x}"');
  assert.equal(second.text, '41');
  assert.equal(second.executionCount, (first.executionCount ?? 0) + 1);
});

test('an error has its name, value and traceback', async () => {
  const { error, results } = await sandbox.runCode('1/0');
  assert.equal(error?.name, 'ZeroDivisionError');
  assert.equal(error.value, 'division by zero');
  assert.match(stripVTControlCharacters(error.traceback), /----> 1 1\/0/);
  assert.deepEqual(results, []);
});

test('a plot is an image and its numbers', async () => {
  const { results, error } = await sandbox.runCode('import matplotlib.pyplot as plt\nplt.plot([1, 2, 3], [4, 5, 6], label="a")\nplt.title("Title")\nplt.xlabel("X")\nplt.show()');
  assert.equal(error, undefined);
  const [plot] = results;
  assert.equal(Buffer.from(plot?.png ?? '', 'base64').subarray(1, 4).toString(), 'PNG');
  assert.equal(plot?.chart?.type, 'line');
  assert.equal(plot.chart.title, 'Title');
  assert.equal(plot.isMainResult, false);
});

test('a bar chart, and figures in a row', async () => {
  const { results } = await sandbox.runCode('plt.bar(["a", "b"], [1, 2])\nplt.show()\nplt.pie([1, 2], labels=["x", "y"])\nplt.show()');
  assert.deepEqual(results.map(result => result.chart?.type), ['bar', 'pie']);
});

test('a table is HTML and data', async () => {
  const { results } = await sandbox.runCode('import pandas as pd\npd.DataFrame({"a": [1, 2], "b": ["x", None]})');
  assert.match(results[0]?.html ?? '', /<table/);
  assert.deepEqual(results[0]?.data, { a: [1, 2], b: ['x', null] });
  assert.equal(results[0]?.isMainResult, true);
});

test('HTML, Markdown, LaTeX, SVG and JSON', async () => {
  const { results } = await sandbox.runCode('from IPython.display import *\nfor each in (HTML("<b>h</b>"), Markdown("# m"), Latex("$l$"), SVG("<svg xmlns=\\"http://www.w3.org/2000/svg\\"/>"), JSON({"j": 1})): display(each)');
  assert.deepEqual(results.map(result => [...result.formats()].find(format => format !== 'text')), ['html', 'markdown', 'latex', 'svg', 'json']);
});

test('contexts have states and folders of their own', async () => {
  const context = await sandbox.createCodeContext({ cwd: '/tmp' });
  await sandbox.runCode('only_here = 1', { context });
  assert.equal((await sandbox.runCode('import os; os.getcwd()', { context })).text, '/tmp');
  assert.equal((await sandbox.runCode('only_here')).error?.name, 'NameError');
  await sandbox.restartCodeContext(context);
  assert.equal((await sandbox.runCode('only_here', { context })).error?.name, 'NameError');
  const ids = (await sandbox.listCodeContexts()).map(({ id }) => id);
  assert.ok(ids.includes(context.id));
  await sandbox.removeCodeContext(context);
  await assert.rejects(sandbox.runCode('1', { context }));
});

test('variables of the environment hold for one execution', async () => {
  assert.equal((await sandbox.runCode('import os; os.environ["ONCE"]', { envs: { ONCE: 'yes' } })).text, 'yes');
  assert.equal((await sandbox.runCode('os.environ.get("ONCE", "no")')).text, 'no');
  assert.equal((await sandbox.runCode('os.environ["E2B_SANDBOX"]')).text, 'true');
});

test('code that takes too long is interrupted, and the next runs', async () => {
  await assert.rejects(sandbox.runCode('import time\ntime.sleep(600)', { timeoutMs: 1_000 }));
  assert.equal((await sandbox.runCode('"still here"')).text, 'still here');
});

test('a kernel that dies says so and is there again', async () => {
  const { error } = await sandbox.runCode('import os; os._exit(1)');
  assert.equal(error?.name, 'UnexpectedEndOfExecution');
  assert.equal((await sandbox.runCode('1 + 1')).text, '2');
});

test('Bash and JavaScript', async () => {
  assert.deepEqual((await sandbox.runCode('echo hi; cd /tmp; pwd', { language: 'bash' })).logs.stdout.join(''), 'hi\n/tmp\n');
  const first = await sandbox.runCode('const numbers = [1, 2, 3]\nconsole.log("js")\nnumbers.map(n => n * 2)', { language: 'js' });
  assert.deepEqual(first.logs.stdout, ['js\n']);
  assert.match(first.text ?? '', /2, 4, 6/);
  assert.equal((await sandbox.runCode('const total = await Promise.resolve(numbers.length)\ntotal', { language: 'javascript' })).text, '3');
  assert.equal((await sandbox.runCode('missing', { language: 'javascript' })).error?.name, 'ReferenceError');
});

test('TypeScript runs in the context of JavaScript, without its types', async () => {
  const first = await sandbox.runCode('interface Point { x: number; y: number }\nconst point: Point = { x: 3, y: 4 }\nfunction norm(p: Point): number { return Math.hypot(p.x, p.y) }\nnorm(point)', { language: 'ts' });
  assert.equal(first.error, undefined);
  assert.equal(first.text, '5');
  assert.equal((await sandbox.runCode('norm({ x: 6, y: 8 } as any)', { language: 'typescript' })).text, '10');
  assert.equal((await sandbox.runCode('const broken: = 1', { language: 'ts' })).error?.name, 'SyntaxError');
});

test('the built template says where it comes from', async () => {
  const origin = await sandbox.files.read('/.e2b');
  const { templateId } = await sandbox.getInfo();
  assert.match(origin, new RegExp(`^ENV_ID=${templateId}\nTEMPLATE_ID=${templateId}\nBUILD_ID=[0-9a-f-]{36}\n$`));
});
