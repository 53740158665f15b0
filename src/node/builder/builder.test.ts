import { afterEach, beforeEach, expect, test } from 'bun:test';
import { chmodSync, existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { userIdOf } from '../../base/process/part-users.ts';
import type { BuilderJob } from '../../protocol/builder.ts';
import { createBuilder, type Builder } from './builder.ts';

/** A number that no platform on this machine can have. */
const installation = 900 + (process.pid % 90);
const answer = { files: [true], user: { home: '/root', known: true } };
const job: BuilderJob & { kind: 'look' } = { kind: 'look', files: ['/a'], user: 'root' };

let dir = '';
let builder: Builder;
beforeEach(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), 'atoll-builder-')));
  // Stands in for the program that confines: it records its arguments, and runs the program that it was given.
  const helperBinary = join(dir, 'helper');
  writeFileSync(helperBinary, `#!/bin/sh\nprintf '%s\\n' "$@" > ${dir}/told\n. ${dir}/program\n`);
  chmodSync(helperBinary, 0o755);
  builder = createBuilder({ helper: { mountsPid: 77 }, helperBinary, builderDir: '/the/builder', installation });
});
afterEach(async () => {
  await builder.stop();
  rmSync(dir, { recursive: true, force: true });
});

/** Sets what the builder does: a script, with the conversation on the standard descriptors and its files as 3 and 4. */
const does = (script: string) => writeFileSync(join(dir, 'program'), script);
const says = (value: unknown) => `echo '${JSON.stringify(value)}'\n`;
const told = () => readFileSync(join(dir, 'told'), 'utf8').trim().split('\n');
const failure = (run: Promise<unknown>) =>
  run.then(
    () => undefined,
    (error: unknown) => error,
  );
/** The control groups that a builder was told to join. */
const groups = () => told().flatMap((word, index, all) => (all[index - 1] === '-g' ? [join(word, '..')] : []));

test('a builder gets its job, sees what it is shown, and its answer is returned', async () => {
  does(`read -r job; printf '%s' "$job" > ${dir}/job; env > ${dir}/env; ${says({ ok: answer })}`);
  expect(await builder.run({ job, shows: { layer: '/layers/a' }, marksOf: 'layer' })).toEqual(answer);
  expect(JSON.parse(readFileSync(join(dir, 'job'), 'utf8'))).toEqual(job);
  expect(readFileSync(join(dir, 'env'), 'utf8')).not.toContain('HOME=');
  expect(told().slice(0, 4)).toEqual(['confine', '77', String(userIdOf('builder', installation)), '10']);
  const rest = told()
    .slice(4)
    .filter((word, index, all) => word !== '-g' && all[index - 1] !== '-g');
  expect(rest).toEqual(['-s', 'layer', '/layers/a', '-x', 'layer', '--', '/the/builder']);
});

test('only one that may ask has the network, and is replied to', async () => {
  const question = { resolve: { host: 'a.test', isSecure: true } };
  does(`read -r job; ${says(question)} read -r reply; printf '%s' "$reply" > ${dir}/reply; ${says({ ok: answer })}`);
  const reply = ({ resolve }: typeof question) => Promise.resolve([`address of ${resolve.host}`]);
  expect(await builder.run({ job, reply })).toEqual(answer);
  expect(told()).toContain('-n');
  expect(JSON.parse(readFileSync(join(dir, 'reply'), 'utf8'))).toEqual({ addresses: ['address of a.test'] });
  expect(await failure(builder.run({ job }))).toMatchObject({ code: 'invalid' });
  expect(told()).not.toContain('-n');
});

test('it reads the file that it is given and writes the one that is made for it', async () => {
  does(`read -r job; cat <&3 >&4; echo more >&4; ${says({ ok: answer })}`);
  const [input, output] = [join(dir, 'input'), join(dir, 'output')];
  writeFileSync(input, 'content\n');
  await builder.run({ job, input, output });
  expect(readFileSync(output, 'utf8')).toBe('content\nmore\n');
});

test('an error that it reports becomes its error, if it is one of ours', async () => {
  for (const [code, expected] of [
    ['not_found', 'not_found'],
    ['toString', 'internal'],
    ['of its own', 'internal'],
  ]) {
    does(`read -r job; ${says({ error: { code, message: 'x'.repeat(3000) } })}`);
    expect(await failure(builder.run({ job }))).toMatchObject({ code: expected, message: 'x'.repeat(2048) });
  }
});

test('the error of one that ends without an answer says how it ended', async () => {
  does('read -r job; echo its own words >&2; exit 3');
  expect(await failure(builder.run({ job }))).toMatchObject({
    code: 'internal',
    message: 'a builder has ended without an answer: its own words',
  });
  does('exit 128');
  expect(await failure(builder.run({ job }))).toMatchObject({
    code: 'internal',
    message: 'a builder has ended without an answer: status 128',
  });
  for (const end of ['exit 137', 'kill -KILL $$']) {
    does(end);
    expect(await failure(builder.run({ job }))).toMatchObject({
      code: 'invalid',
      message: 'what should be read has ended its reader',
    });
  }
  does(`head -c 10000 /dev/zero | tr '\\0' x >&2; exit 1`);
  const { message } = (await failure(builder.run({ job }))) as Error;
  expect(message.length).toBeLessThan(2200);
});

test('one that ends after its answer has answered, whatever its status', async () => {
  does(`${says({ ok: answer })} exec <&-; exit 1`);
  expect(await builder.run({ job })).toEqual(answer);
});

test('a caller that gives up gets its own reason, and the builder ends', async () => {
  expect(await failure(builder.run({ job, signal: AbortSignal.abort(new Error('gone')) }))).toMatchObject({
    message: 'gone',
  });
  expect(existsSync(join(dir, 'told'))).toBe(false);
  const leaving = new AbortController();
  does(`echo $$ > ${dir}/pid; read -r job; exec sleep 60`);
  const run = failure(builder.run({ job, signal: leaving.signal }));
  while (!existsSync(join(dir, 'pid')) || readFileSync(join(dir, 'pid'), 'utf8') === '') await Bun.sleep(2);
  leaving.abort(new Error('later'));
  expect(await run).toMatchObject({ message: 'later' });
  expect(existsSync(`/proc/${readFileSync(join(dir, 'pid'), 'utf8').trim()}/root`)).toBe(false);
});

test('each has a control group of its own, which is removed with it; in the end all are removed', async () => {
  does(`read -r job; ${says({ ok: answer })}`);
  await builder.run({ job });
  const first = groups();
  expect(first.length).toBeGreaterThan(0);
  await builder.run({ job });
  expect(groups()).not.toEqual(first);
  await builder.stop();
  const all = [...first, ...groups(), ...first.map(path => join(path, '..'))];
  expect(all.filter(path => existsSync(path))).toEqual([]);
});
