import { Sandbox } from '@e2b/code-interpreter';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { fencedIn } from '../docs/code-blocks.ts';
import { repository, startPlatform, type TestPlatform } from '../support/platform.ts';
import { runToEnd } from '../support/process.ts';

// The template as the platform builds it by itself after its start, used through the published code interpreter.

/** The parts of the template to build; `packages` takes longest, and is only built on request. */
const parts = process.env['CODE_INTERPRETER_PARTS'] ?? 'r,java';
const without = (part: string) =>
  parts.split(',').includes(part) ? false : `the template is built without its part ${part} (CODE_INTERPRETER_PARTS)`;

let platform: TestPlatform;
let sandbox: Sandbox;
let connection: { apiUrl: string; apiKey: string; sandboxUrl: string; domain: string };

before(async () => {
  letTimersGo();
  platform = await startPlatform({
    ATOLL_TEMPLATES: 'code-interpreter-v1',
    ATOLL_TEMPLATE_PARTS: parts,
    ATOLL_DOMAIN: 'atoll.localhost',
    ATOLL_TLS_PORT: '0',
  });
  const { url, apiKey, domain } = platform.ready;
  assert.deepEqual(platform.ready.building, ['code-interpreter-v1']);
  connection = { apiUrl: url, apiKey, sandboxUrl: url, domain };
  sandbox = await createWhenBuilt();
  // The package has no option for its own port, and this process has neither the names nor the authority. See the last
  // test.
  Object.defineProperty(sandbox, 'jupyterUrl', { get: () => url });
});
after(async () => {
  await sandbox?.kill();
  await platform[Symbol.asyncDispose]();
});

/**
 * The package does not clear the timers of its requests: they would keep this process alive for a minute after the last
 * test.
 */
function letTimersGo(): void {
  const { setTimeout: start } = globalThis;
  const letGo = (...args: Parameters<typeof start>) => start(...args).unref();
  globalThis.setTimeout = Object.assign(letGo, start);
}

/** All tests share one sandbox; on a busy machine they take longer than the usual five minutes. */
const sandboxMs = 60 * 60_000;

/**
 * A create waits for the template's build, but no longer than clients wait; the first build on a machine downloads
 * packages.
 */
async function createWhenBuilt(): Promise<Sandbox> {
  for (;;) {
    try {
      return await Sandbox.create('code-interpreter-v1', { ...connection, timeoutMs: sandboxMs });
    } catch (error) {
      if (!(error instanceof Error) || !error.message.includes('still being built')) throw error;
    }
  }
}

test('the last value, what is printed, and the state of a context', async () => {
  const lines: string[] = [];
  const first = await sandbox.runCode('import sys\nx = 40\nprint("out")\nprint("err", file=sys.stderr)\nx + 2', {
    onStdout: message => void lines.push(message.line),
  });
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
  const { results, error } = await sandbox.runCode(
    'import matplotlib.pyplot as plt\nplt.plot([1, 2, 3], [4, 5, 6], label="a")\nplt.title("Title")\nplt.xlabel("X")\nplt.show()',
  );
  assert.equal(error, undefined);
  const [plot] = results;
  assert.equal(
    Buffer.from(plot?.png ?? '', 'base64')
      .subarray(1, 4)
      .toString(),
    'PNG',
  );
  assert.equal(plot?.chart?.type, 'line');
  assert.equal(plot.chart.title, 'Title');
  assert.equal(plot.isMainResult, false);
});

test('a bar chart, and figures in a row', async () => {
  const { results } = await sandbox.runCode(
    'plt.bar(["a", "b"], [1, 2])\nplt.show()\nplt.pie([1, 2], labels=["x", "y"])\nplt.show()',
  );
  assert.deepEqual(
    results.map(result => result.chart?.type),
    ['bar', 'pie'],
  );
});

test('what reads the numbers behind a figure says nothing of its own', async () => {
  for (const code of ['plt.imshow([[1, 2], [3, 4]])\nplt.colorbar()', 'plt.boxplot([[1, 2, 3], [2, 3, 4]])']) {
    const { logs, error, results } = await sandbox.runCode(`import matplotlib.pyplot as plt\n${code}\nplt.show()`);
    assert.deepEqual([logs.stderr, error, results.length], [[], undefined, 1], code);
  }
});

test('a table is HTML and data', async () => {
  const { results } = await sandbox.runCode('import pandas as pd\npd.DataFrame({"a": [1, 2], "b": ["x", None]})');
  assert.match(results[0]?.html ?? '', /<table/);
  assert.deepEqual(results[0]?.data, { a: [1, 2], b: ['x', null] });
  assert.equal(results[0]?.isMainResult, true);
});

test('HTML, Markdown, LaTeX, SVG and JSON', async () => {
  const { results } = await sandbox.runCode(
    'from IPython.display import *\nfor each in (HTML("<b>h</b>"), Markdown("# m"), Latex("$l$"), SVG("<svg xmlns=\\"http://www.w3.org/2000/svg\\"/>"), JSON({"j": 1})): display(each)',
  );
  assert.deepEqual(
    results.map(result => [...result.formats()].find(format => format !== 'text')),
    ['html', 'markdown', 'latex', 'svg', 'json'],
  );
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

test('a cell that waits for its turn is answered at once and kept alive', async () => {
  const first = sandbox.runCode('import time\ntime.sleep(9)');
  await new Promise(resolve => setTimeout(resolve, 500).ref());
  const second = sandbox.runCode('"its turn"', { requestTimeoutMs: 3_000, timeoutMs: 0 });
  const third = await fetch(`${platform.ready.url}/execute`, {
    method: 'POST',
    headers: { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '49999' },
    body: JSON.stringify({ code: '1' }),
  });
  const types = (await third.text())
    .trim()
    .split('\n')
    .map(line => (JSON.parse(line) as { type: string }).type);
  assert.deepEqual(types, ['keepalive', 'number_of_executions', 'result', 'end_of_execution']);
  assert.equal((await second).text, 'its turn');
  assert.equal((await first).error, undefined);
});

test('a client that leaves while its cell waits for its turn takes none', async () => {
  const first = sandbox.runCode('import time\ntime.sleep(3)');
  await new Promise(resolve => setTimeout(resolve, 500).ref());
  await assert.rejects(sandbox.runCode('never = 1', { timeoutMs: 500 }));
  await first;
  assert.equal((await sandbox.runCode('never')).error?.name, 'NameError');
});

test('a kernel that dies says so and is there again', async () => {
  const { error } = await sandbox.runCode('import os; os._exit(1)');
  assert.equal(error?.name, 'UnexpectedEndOfExecution');
  assert.equal((await sandbox.runCode('1 + 1')).text, '2');
});

test('code that ends its own program loses its state, and neither the call nor the next cells', async () => {
  for (const [language, code, isTold] of [
    ['python', 'mine = 1; exit()', false],
    ['python', 'quit()', false],
    ['js', 'process.exit(1)', true],
  ] as const) {
    const { error } = await sandbox.runCode(code, { language, timeoutMs: 60_000 });
    assert.equal(error?.name, isTold ? 'UnexpectedEndOfExecution' : undefined, code);
    for (const next of ['2', '3']) assert.equal((await sandbox.runCode(next, { language })).text, next);
  }
  assert.equal((await sandbox.runCode('mine')).error?.name, 'NameError');
});

test('Bash and JavaScript', async () => {
  assert.deepEqual(
    (await sandbox.runCode('echo hi; cd /tmp; pwd', { language: 'bash' })).logs.stdout.join(''),
    'hi\n/tmp\n',
  );
  const first = await sandbox.runCode('const numbers = [1, 2, 3]\nconsole.log("js")\nnumbers.map(n => n * 2)', {
    language: 'js',
  });
  assert.deepEqual(first.logs.stdout, ['js\n']);
  assert.match(first.text ?? '', /2, 4, 6/);
  assert.equal(
    (await sandbox.runCode('const total = await Promise.resolve(numbers.length)\ntotal', { language: 'javascript' }))
      .text,
    '3',
  );
  assert.equal((await sandbox.runCode('missing', { language: 'javascript' })).error?.name, 'ReferenceError');
});

test('TypeScript runs in the context of JavaScript, without its types', async () => {
  const first = await sandbox.runCode(
    'interface Point { x: number; y: number }\nconst point: Point = { x: 3, y: 4 }\nfunction norm(p: Point): number { return Math.hypot(p.x, p.y) }\nnorm(point)',
    { language: 'ts' },
  );
  assert.equal(first.error, undefined);
  assert.equal(first.text, '5');
  assert.equal((await sandbox.runCode('norm({ x: 6, y: 8 } as any)', { language: 'typescript' })).text, '10');
  assert.equal((await sandbox.runCode('const broken: = 1', { language: 'ts' })).error?.name, 'SyntaxError');
});

const javaScript = async (code: string) => {
  const { error, text } = await sandbox.runCode(code, { language: 'javascript' });
  return error ? `${error.name}: ${error.value}` : text;
};

test('cells of JavaScript are run as they are written: declarations stay, and may come again', async () => {
  assert.equal(
    await javaScript('const { first, second: [other] } = await Promise.resolve({ first: 1, second: [2] })'),
    undefined,
  );
  assert.equal(await javaScript('first + other'), '3');
  assert.equal(await javaScript('const later = await Promise.resolve(5); later'), '5');
  assert.equal(await javaScript('const later = 6; later'), '6');
  assert.equal(await javaScript('if (true) {\n  var indented = 7\n}'), undefined);
  assert.equal(await javaScript('let indented = 8; indented'), '8');
  assert.equal(await javaScript('class Shape { sides = 3 }'), undefined);
  assert.equal(await javaScript('class Shape { sides = 4 }\nnew Shape().sides'), '4');
  assert.equal(await javaScript('function area() { return 1 }'), undefined);
  assert.equal(await javaScript('let area = () => 2; area()'), '2');
  assert.equal(await javaScript('const fixed = 1; fixed = 2'), 'TypeError: Assignment to constant variable.');
  assert.equal(await javaScript('let twice; let twice'), "SyntaxError: Identifier 'twice' has already been declared");
});

test('text of JavaScript cells that looks like code stays text', async () => {
  assert.equal(await javaScript('`const a = 1\nlet b = 2`'), 'const a = 1\nlet b = 2');
  assert.equal(await javaScript('// await nothing\n"await" + `${1}`'), 'await1');
  assert.equal(await javaScript('{ key: 1 }'), '{ key: 1 }');
});

test('cells of JavaScript import modules, statically and when they run', async () => {
  assert.equal(
    await javaScript("import fs, { readFileSync as read } from 'node:fs'\ntypeof fs.existsSync + typeof read"),
    'functionfunction',
  );
  assert.equal(await javaScript("import * as path from 'node:path'; path.join('a', 'b')"), 'a/b');
  await sandbox.files.write('/home/user/module.mjs', 'export const answer = 42; export default "fallback"');
  assert.equal(
    await javaScript("import fallback, { answer } from '/home/user/module.mjs'; `${fallback} ${answer}`"),
    'fallback 42',
  );
  assert.equal(await javaScript("(await import('/home/user/module.mjs')).answer"), '42');
});

test('lines that JavaScript prints come whole', async () => {
  const lines: string[] = [];
  await sandbox.runCode('for (let i = 0; i < 20000; i++) console.log("line " + i)', {
    language: 'js',
    onStdout: ({ line }) => void lines.push(line),
  });
  assert.ok(
    lines.every(line => /^(line \d+\n)+$/.test(line)),
    JSON.stringify(lines.find(line => !/^(line \d+\n)+$/.test(line))),
  );
  assert.equal(lines.join('').split('\n').length, 20_001);
  const { logs } = await sandbox.runCode('process.stdout.write("no end")', { language: 'js' });
  assert.deepEqual(logs.stdout, ['no end']);
});

test('JavaScript that takes too long is interrupted and keeps its state', async () => {
  assert.equal(await javaScript('let kept = 9; kept'), '9');
  for (const code of ['for (;;) {}', 'await new Promise(() => setInterval(() => {}, 1000))'])
    await assert.rejects(sandbox.runCode(code, { language: 'js', timeoutMs: 1_000 }));
  assert.equal(await javaScript('kept'), '9');
});

test('what the caller has wrong is a client error with the reason', async () => {
  await assert.rejects(
    sandbox.createCodeContext({ language: 'cobol' }),
    /400.*cobol is not supported; there are .*python/,
  );
  await assert.rejects(sandbox.runCode('1', { language: 'cobol' }), /400.*cobol is not supported/);
  await assert.rejects(sandbox.createCodeContext({ cwd: '/nowhere' }), /400.*\/nowhere is not there/);
  await assert.rejects(sandbox.createCodeContext({ cwd: '/etc/passwd' }), /400.*is no directory/);
});

test('cells are root’s, and may be anywhere', async () => {
  const context = await sandbox.createCodeContext({ cwd: '/root' });
  assert.equal((await sandbox.runCode('import os; f"{os.getuid()} {os.getcwd()}"', { context })).text, '0 /root');
  const installed = await sandbox.runCode('!touch /usr/local/made && echo done', { context });
  assert.match(installed.logs.stdout.join(''), /done/);
});

test('figures that are saved and not shown are no results, others are', async () => {
  const draw = 'import matplotlib.pyplot as plt\nplt.plot([1, 2])\n';
  const saved = await sandbox.runCode(`${draw}plt.savefig("/tmp/figure.png")`);
  assert.deepEqual([saved.error, saved.results.length], [undefined, 0]);
  assert.ok((await sandbox.files.getInfo('/tmp/figure.png')).size > 1000);
  assert.equal((await sandbox.runCode(`${draw}plt.savefig("/tmp/figure.png")\nplt.show()`)).results.length, 1);
  assert.equal((await sandbox.runCode(draw)).results.filter(({ png }) => png).length, 1);
});

test('images of Pillow are results where they are shown or saved to a path', async () => {
  const image = 'from PIL import Image\nimage = Image.new("RGB", (4, 4), "red")\n';
  for (const code of ['image.show()', 'image.save("/tmp/image.png")', 'image']) {
    const { results, error } = await sandbox.runCode(image + code);
    assert.deepEqual([code, error, results.filter(({ png }) => png).length], [code, undefined, 1]);
  }
  assert.equal((await sandbox.runCode(`${image}import io\nimage.save(io.BytesIO(), "PNG")`)).results.length, 0);
});

test('every kind of chart is data', async () => {
  const chart = async (code: string) => {
    const { results, error } = await sandbox.runCode(`import matplotlib.pyplot as plt\n${code}\nplt.show()`);
    assert.equal(error, undefined);
    return results[0]?.chart;
  };
  const box = await chart(
    'plt.boxplot([[85, 90, 78, 92, 88], [95, 89, 76, 91, 84, 87]], tick_labels=["a", "b"], patch_artist=True)',
  );
  assert.equal(box?.type, 'box_and_whisker');
  assert.deepEqual(
    (box.elements as { label: string; min: number; median: number; max: number }[]).map(({ min, median, max }) => [
      min,
      median,
      max,
    ]),
    [
      [78, 88, 92],
      [84, 88, 95],
    ],
  );
  assert.equal((await chart('plt.scatter([1, 2], [3, 4], label="p")'))?.type, 'scatter');
  const both = await chart('figure, axes = plt.subplots(1, 2)\naxes[0].plot([1, 2])\naxes[1].bar(["a"], [1])');
  assert.deepEqual(
    [both?.type, both?.elements.map(({ type }: { type: string }) => type)],
    ['superchart', ['line', 'bar']],
  );
  assert.equal((await chart('plt.imshow([[1, 2], [3, 4]])'))?.type, 'unknown');
});

test('variables of three levels: the sandbox, the context’s kernel, one execution', async () => {
  const own = await Sandbox.create('code-interpreter-v1', { ...connection, envs: { LEVEL: 'sandbox' } });
  try {
    Object.defineProperty(own, 'jupyterUrl', { get: () => connection.apiUrl });
    for (const [language, read] of [
      ['python', 'import os; os.environ.get("LEVEL")'],
      ['javascript', 'process.env.LEVEL'],
      ['bash', 'echo $LEVEL'],
    ] as const) {
      const value = async (envs?: Record<string, string>) => {
        const { text, logs } = await own.runCode(read, { language, ...(envs && { envs }) });
        return (text ?? logs.stdout.join('')).trim();
      };
      assert.deepEqual(
        [language, await value(), await value({ LEVEL: 'execution' }), await value()],
        [language, 'sandbox', 'execution', 'sandbox'],
      );
    }
  } finally {
    await own.kill();
  }
});

const valueIn = async (language: string, code: string, envs?: Record<string, string>) => {
  const { error, results, logs } = await sandbox.runCode(code, { language, ...(envs && { envs }) });
  // R displays its results, so none of them is the main one.
  return error ? `${error.name}: ${error.value}` : (results[0]?.text ?? logs.stdout.join('')).trim();
};

test('Java', { skip: without('java') }, async () => {
  assert.equal(await valueIn('java', 'int sum(int a, int b) { return a + b; }\nsum(20, 22)'), '42');
  assert.equal(await valueIn('java', 'System.out.println("seen" + sum(1, 2));'), 'seen3');
  assert.equal(await valueIn('java', 'List.of(1, 2).stream().map(i -> i * 2).collect(Collectors.toList())'), '[2, 4]');
  assert.equal(await valueIn('java', 'System.getProperty("user.dir")'), '/home/user');
  assert.equal(
    await valueIn('java', 'throw new IllegalStateException("boom");'),
    'java.lang.IllegalStateException: boom',
  );
  assert.match(await valueIn('java', 'int wrong = "text";'), /^CompilationException: incompatible types/);
  assert.equal(await valueIn('java', 'System.getProperty("ONCE", "none")', { ONCE: 'yes' }), 'yes');
  assert.equal(await valueIn('java', 'System.getProperty("ONCE", "none")'), 'none');
  await assert.rejects(sandbox.runCode('while (true) {}', { language: 'java', timeoutMs: 2_000 }));
  assert.equal(await valueIn('java', 'sum(1, 1)'), '2');
});

test('R', { skip: without('r') }, async () => {
  assert.equal(await valueIn('r', 'x <- c(1, 2, 3)\nmean(x)'), '[1] 2');
  assert.equal(await valueIn('r', 'cat("seen", sum(x))'), 'seen 6');
  assert.equal(await valueIn('r', 'getwd()'), '[1] "/home/user"');
  assert.match(await valueIn('r', 'stop("boom")'), /boom/);
  assert.equal(await valueIn('r', 'Sys.getenv("ONCE", unset = "none")', { ONCE: 'yes' }), '[1] "yes"');
  assert.equal(await valueIn('r', 'Sys.getenv("ONCE", unset = "none")'), '[1] "none"');
  const { results } = await sandbox.runCode('plot(x)', { language: 'r' });
  assert.ok(
    results.some(({ png, svg }) => png ?? svg),
    JSON.stringify(results).slice(0, 300),
  );
  await assert.rejects(sandbox.runCode('Sys.sleep(600)', { language: 'r', timeoutMs: 2_000 }));
  assert.equal(await valueIn('r', '1 + 1'), '[1] 2');
});

test('the packages of the published environment', { skip: without('packages') }, async () => {
  const names =
    'aiohttp bs4 bokeh cv2 docx gensim imageio joblib librosa matplotlib nltk numba numpy openpyxl orjson pandas PIL plotly pytest pytz requests scipy seaborn skimage sklearn soundfile spacy sympy textblob tornado urllib3 xarray xlrd';
  const code = `import importlib\nmissing = []\nfor name in "${names}".split():\n    try:\n        importlib.import_module(name)\n    except Exception as error:\n        missing.append(f"{name}: {error!r}")\n" ".join(missing)`;
  assert.equal((await sandbox.runCode(code, { timeoutMs: 300_000 })).text, '');
});

test(
  'a figure of Plotly is a result, as the last value and where it is shown',
  { skip: without('packages') },
  async () => {
    const figure = 'import plotly.express as px\nfig = px.line(x=[1, 2], y=[3, 4])\n';
    for (const last of ['fig', 'fig.show()']) {
      const { results, error } = await sandbox.runCode(figure + last, { timeoutMs: 300_000 });
      assert.equal(error, undefined, last);
      const shown = results.map(result => Object.keys((result.raw as { extra?: object }).extra ?? {}));
      assert.deepEqual(shown, [['application/vnd.plotly.v1+json']], last);
    }
  },
);

test('the first cell of Bash does not wait for its kernel', async () => {
  const contexts = await sandbox.listCodeContexts();
  for (const language of ['python', 'javascript', 'bash'])
    assert.ok(
      contexts.some(context => context.language === language),
      language,
    );
});

test('every method that makes a URL works in the environment that a start prints, where names lead here', async () => {
  const folder = join(repository, 'test/code-interpreter/urls');
  const { stdout, stderr } = await runToEnd(
    [process.execPath, '--import', join(folder, 'names.mjs'), join(folder, 'every-url.mjs')],
    { env: { ...platform.env, NODE_EXTRA_CA_CERTS: platform.ready.tls?.authorityFile ?? '' }, timeoutMs: 120_000 },
  );
  assert.deepEqual(
    JSON.parse(stdout || '{}'),
    {
      runCode: '42',
      context: '/tmp',
      listed: true,
      uploadUrl: 200,
      downloadUrl: 'uploaded',
      getHost: 'shown',
      getMcpUrl: 'mcp',
      streamUrl: 'vnc',
      volume: 'in the volume',
    },
    stderr,
  );
});

test('the built template says where it comes from', async () => {
  const origin = await sandbox.files.read('/.e2b');
  const { templateId } = await sandbox.getInfo();
  assert.match(origin, new RegExp(`^ENV_ID=${templateId}\nTEMPLATE_ID=${templateId}\nBUILD_ID=[0-9a-f-]{36}\n$`));
});

test('the program of the guide prints what the guide says', async () => {
  const page = 'docs/guides/code-interpreter.md';
  const [program, output] = fencedIn(page, readFileSync(join(repository, page), 'utf8'));
  assert.deepEqual([program?.language, program?.mark, output?.language], ['js', 'read', 'output']);
  const answer = await runToEnd(['node', '--input-type=module', '--eval', program?.text ?? ''], {
    cwd: repository,
    env: platform.env,
  });
  assert.deepEqual([answer.exitCode, answer.stdout], [0, output?.text], answer.stderr);
});
