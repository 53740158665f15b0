import { expect, test } from 'bun:test';
import { AtollError } from '../base/error.ts';
import { platformVersion } from '../base/version.ts';
import { parseArguments } from './terminal/arguments.ts';
import type { Command, Terminal } from './terminal/command.ts';
import { runCommandLine } from './run.ts';

function recorded(): Terminal & { text: { out: string; err: string } } {
  const text = { out: '', err: '' };
  return { text, isInteractive: false, out: part => void (text.out += part), err: part => void (text.err += part) };
}

const commands: Command[] = [
  {
    name: 'thing make',
    usage: '[--size N] NAME',
    summary: 'Makes a thing',
    async run(args, terminal) {
      const { values, positionals } = parseArguments(args, { size: { type: 'string' } }, ['NAME']);
      terminal.out(`${positionals[0]} ${values.size ?? 'default'}\n`);
      return 0;
    },
  },
  {
    name: 'fail',
    usage: '',
    summary: 'Fails',
    run: () => Promise.reject(new AtollError('invalid', 'The thing is broken. Mend it.')),
  },
  { name: 'crash', usage: '', summary: 'Has a defect', run: () => Promise.reject(new TypeError('x is undefined')) },
];

async function run(...argv: string[]) {
  const terminal = recorded();
  return { code: await runCommandLine(argv, commands, terminal), ...terminal.text };
}

test('a command of two words gets the rest', async () => {
  expect(await run('thing', 'make', '--size', '3', 'boat')).toEqual({ code: 0, out: 'boat 3\n', err: '' });
});

test('an unknown command, option or operand is named, and exits with 2', async () => {
  expect(await run('thing')).toMatchObject({ code: 2, out: '' });
  expect((await run('thing', 'make', '--colour', 'red', 'boat')).err).toContain('--colour');
  expect(await run('thing', 'make')).toMatchObject({
    code: 2,
    err: expect.stringContaining('Usage: atoll thing make [--size N] NAME'),
  });
  expect(await run('thing', 'make', 'a', 'b')).toMatchObject({ code: 2 });
});

test('a failure of the world is one message without usage; a defect is not hidden', async () => {
  expect(await run('fail')).toEqual({ code: 1, out: '', err: 'atoll fail: The thing is broken. Mend it.\n' });
  await expect(run('crash')).rejects.toThrow(TypeError);
});

test('help lists every command, and each has its own', async () => {
  const { out } = await run();
  for (const { name, summary } of commands) expect(out).toMatch(new RegExp(`atoll ${name}.*${summary}`));
  expect((await run('thing', 'make', '--help')).out).toContain('Makes a thing');
  expect((await run('help', 'thing', 'make')).out).toContain('Usage: atoll thing make [--size N] NAME');
  expect((await run('--help')).out).toBe(out);
});

test('the first word of commands lists them, and what is nearly a command is asked about', async () => {
  for (const asked of [
    ['help', 'thing'],
    ['thing', '--help'],
  ])
    expect(await run(...asked)).toEqual({ code: 0, out: expect.stringMatching(/^ *atoll thing make .*\n$/), err: '' });
  expect(await run('thing')).toEqual({ code: 2, out: '', err: expect.stringContaining('atoll thing make') });
  expect((await run('think', 'mak')).err).toContain('Did you mean `atoll thing make`?');
  expect((await run('wholly-other', '--help')).err).toStartWith("atoll: there is no command 'wholly-other'. ");
  expect((await run('wholly-other')).err).toBe("atoll: there is no command 'wholly-other'. `atoll help` lists them.\n");
});

test('ls is the habit of other command lines where there is a list, and an operand anywhere else', async () => {
  const list: Command = {
    name: 'thing list',
    usage: '[--json]',
    summary: 'Lists',
    run: async (args, terminal) => (terminal.out(`listed ${args.join(' ')}\n`), 0),
  };
  const terminal = recorded();
  expect(await runCommandLine(['thing', 'ls', '--json'], [...commands, list], terminal)).toBe(0);
  expect(terminal.text.out).toBe('listed --json\n');
  expect((await run('thing', 'ls')).code).toBe(2);
  // A list of other things does not count as a list of these.
  const other = recorded();
  expect(await runCommandLine(['thing', 'ls'], [...commands, { ...list, name: 'other list' }], other)).toBe(2);
  expect(other.text.err).toContain("there is no command 'thing ls'");
  expect((await run('thing', 'make', 'ls')).out).toBe('ls default\n');
});

/** Runs a command that fails with this error. */
async function failing(error: unknown) {
  const terminal = recorded();
  const broken: Command = { name: 'fail', usage: '', summary: 'Fails', run: () => Promise.reject(error) };
  return { code: await runCommandLine(['fail'], [broken], terminal), ...terminal.text };
}
const systemError = (code: string, more: object = {}) =>
  Object.assign(new Error(`${code}: it failed`), { code, ...more });

test('an error of the system is put into words, with a remedy', async () => {
  for (const code of ['EACCES', 'EPERM']) {
    const err = (what: string) => `atoll fail: This user may not use ${what}: run it as root, e.g. with sudo.\n`;
    expect(await failing(systemError(code, { path: '/a' }))).toEqual({ code: 1, out: '', err: err('/a') });
    expect((await failing(systemError(code))).err).toBe(err('what it needs'));
  }
  expect((await failing(systemError('ENOSPC', { path: '/a' }))).err).toContain('full: nothing can be written to /a.');
  expect((await failing(systemError('ENOSPC'))).err).toContain('The disk is full. Make room');
  expect((await failing(systemError('ENOTDIR'))).err).toBe('atoll fail: ENOTDIR: it failed.\n');
  await expect(failing(systemError('ERR_ASSERTION'))).rejects.toThrow('it failed');
});

test('what was given can tell the terminal nothing, and is not repeated for ever', async () => {
  const hostile = 'a\x1b[2J\u009b\u202e';
  expect((await failing(new AtollError('not_found', `There is no ${hostile}`))).err).toBe(
    'atoll fail: There is no a\\u001b[2J\\u009b\\u202e\n',
  );
  expect((await run(hostile)).err).not.toContain('\x1b');
  expect((await failing(new AtollError('invalid', 'x'.repeat(1e6)))).err.length).toBeLessThan(3000);
});

test('an interrupted command exits as in shells', async () => {
  expect((await failing(new AtollError('canceled', 'Interrupted.'))).code).toBe(130);
  expect((await failing(systemError('EROFS', { path: '/a' }))).err).toContain(
    'is read-only: nothing can be written to /a',
  );
});

test('the release is said by both habits', async () => {
  for (const word of ['version', '--version'])
    expect(await run(word)).toEqual({ code: 0, out: `atoll ${platformVersion}\n`, err: '' });
});

test('the longer of two commands that fit is meant, and asked about is the one that is nearest', async () => {
  const named = (name: string): Command => ({
    ...{ name, usage: '', summary: name },
    run: async (_, terminal) => (terminal.out(name), 0),
  });
  const more = [...['thing', 'thing sail', 'thing sale', 'ls'].map(named), { ...named('thing hide'), summary: '' }];
  const terminal = recorded();
  await runCommandLine(['thing', 'sail'], more, terminal);
  expect(terminal.text.out).toBe('thing sail');
  const asked = async (...argv: string[]) => {
    const at = recorded();
    await runCommandLine(argv, more, at);
    return /Did you mean `atoll ([^`]*)`/.exec(at.text.err)?.[1];
  };
  expect(await asked('thin', 'sal')).toBe('thing sail');
  expect(await asked('thinn', 'saale')).toBe('thing sale');
  expect(await asked('thi', 'sa')).toBeUndefined();
  expect(await asked('l')).toBe('ls');
  expect(await asked('x')).toBeUndefined();
  expect(await asked('tying', 'hide')).toBeUndefined();
});
