import { expect, test } from 'bun:test';
import { AtollError } from '../../base/error.ts';
import type { Connection } from './connection.ts';
import { loginCommands } from './login.ts';

/** A user who types or pipes these pieces. */
function scene(pieces: string[] = [], isTerminal = false) {
  const seen = { saved: [] as Connection[], out: '', err: '', left: [...pieces] };
  const input = {
    isTerminal,
    async *chunks() {
      for (let piece = seen.left.shift(); piece !== undefined; piece = seen.left.shift()) yield Buffer.from(piece);
    },
  };
  const terminal = {
    input,
    out: (text: string) => void (seen.out += text),
    err: (text: string) => void (seen.err += text),
  };
  const saved = {
    save: (connection: Connection) => (seen.saved.push(connection), '/home/me/login.json'),
    forget: () => seen.saved.pop() !== undefined,
  };
  const check = async ({ apiKey }: Connection) => {
    if (apiKey === 'bad') throw new AtollError('unauthenticated', 'The key is none.');
  };
  const [login, logout] = loginCommands(saved, check);
  return {
    seen,
    login: (...args: string[]) => login?.run(args, terminal as never),
    logout: (...args: string[]) => logout?.run(args, terminal as never),
  };
}

test('a login keeps the origin, the key and the domain, by default that of the URL', async () => {
  const { seen, login } = scene();
  expect(await login('https://h:8443/path', '--key', ' k ')).toBe(0);
  await login('http://h', '--key', 'k', '--domain', 'boxes.h');
  expect(seen.saved).toEqual([
    { url: 'https://h:8443', apiKey: 'k', domain: 'h:8443' },
    { url: 'http://h', apiKey: 'k', domain: 'boxes.h' },
  ]);
  expect(seen.err).toBe('Signed in; kept in /home/me/login.json.\n'.repeat(2));
});

test('a program is told where it signed in, and nobody is shown the key', async () => {
  const { seen, login } = scene();
  await login('https://h', '--key', 'secret', '--json');
  expect(JSON.parse(seen.out)).toEqual({ url: 'https://h', domain: 'h' });
});

test('without --key it is the first line of the input, which a person is asked for', async () => {
  const piped = scene(['se', 'cret\nmore', 'never read']);
  await piped.login('https://h');
  expect(piped.seen).toMatchObject({ saved: [{ apiKey: 'secret' }], left: ['never read'] });
  expect(piped.seen.err).toStartWith('Signed in');
  const typed = scene(['k\n'], true);
  await typed.login('https://h');
  expect(typed.seen.err).toStartWith('API key: Signed in');
  const given = scene([], true);
  await given.login('https://h', '--key', 'k');
  expect(given.seen.err).toStartWith('Signed in');
});

test('no more is read than a key may have', async () => {
  const { seen, login } = scene(['x'.repeat(1024), 'y', 'never read']);
  await login('https://h');
  expect(seen).toMatchObject({ saved: [{ apiKey: `${'x'.repeat(1024)}y` }], left: ['never read'] });
});

test('an invalid URL or key, or one that is refused, is not saved', async () => {
  const { seen, login } = scene([' \n']);
  for (const url of ['h', 'ftp://h', 'http://'])
    await expect(login(url, '--key', 'k')).rejects.toThrow('must be that of an installation');
  await expect(login('https://h')).rejects.toThrow('No API key was given');
  await expect(login('https://h', '--key', 'bad')).rejects.toThrow('The key is none.');
  expect(seen).toMatchObject({ saved: [], out: '', err: '' });
});

test('a logout says whether there was a login', async () => {
  const { seen, login, logout } = scene();
  await login('https://h', '--key', 'k');
  seen.err = '';
  await logout();
  await logout();
  await logout('--json');
  expect(seen).toMatchObject({ err: 'Forgotten.\nThere was no login.\n', out: '{\n  "forgotten": false\n}\n' });
});
