import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { localConnection, savedConnection, savedLogin, sshKeyFile } from './connection.ts';
import { recordInstance } from './platform/instance.ts';
import { readSettings } from './settings/settings.ts';

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'atoll-login-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const connection = { url: 'https://h', apiKey: 'key', domain: 'boxes.h' };

test('a login is kept where this user has settings, for nobody else to read, until it is forgotten', () => {
  for (const [environment, file] of [
    [{ HOME: folder }, join(folder, '.config/atoll/login.json')],
    [{ HOME: folder, XDG_CONFIG_HOME: join(folder, 'xdg') }, join(folder, 'xdg/atoll/login.json')],
  ] as const) {
    const saved = savedLogin(environment);
    expect(savedConnection(environment)).toBeUndefined();
    expect(saved.forget()).toBe(false);
    expect(saved.save(connection)).toBe(file);
    expect([statSync(file).mode & 0o777, statSync(dirname(file)).mode & 0o777]).toEqual([0o600, 0o700]);
    expect(savedConnection(environment)).toEqual(connection);
    saved.save({ ...connection, apiKey: 'other' });
    expect(savedConnection(environment)?.apiKey).toBe('other');
    expect(sshKeyFile(environment)).toBe(join(dirname(file), 'ssh/id_ed25519'));
    expect([saved.forget(), saved.forget()]).toEqual([true, false]);
  }
});

test('a file that others could read is not written into', () => {
  const environment = { HOME: folder };
  const file = join(folder, '.config/atoll/login.json');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, '', { mode: 0o644 });
  savedLogin(environment).save(connection);
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test('an invalid login counts as broken, and no part of it is used', () => {
  const environment = { HOME: folder };
  const file = savedLogin(environment).save(connection);
  const { url, apiKey, domain } = connection;
  for (const text of [
    '',
    '{',
    '[]',
    'null',
    ...[
      { url, apiKey },
      { url, domain },
      { apiKey, domain },
    ].map(part => JSON.stringify(part)),
  ]) {
    writeFileSync(file, text);
    expect(() => savedConnection(environment)).toThrow(`${file} is broken`);
  }
});

test('the installation of this machine is reached while it runs, at the port that it has', () => {
  const own = () => localConnection(readSettings({ ATOLL_DATA_DIR: folder, ATOLL_DOMAIN: 'boxes.h' }));
  expect(own).toThrow(`No platform runs on ${folder}`);
  writeFileSync(join(folder, 'api-key'), 'key\n');
  expect(own).toThrow(`No platform runs on ${folder}`);
  recordInstance(folder, { url: 'http://127.0.0.1:3000', origin: 'https://h' });
  expect(own()).toEqual({ url: 'http://127.0.0.1:3000', apiKey: 'key', domain: 'boxes.h:3000' });
  recordInstance(folder, { url: 'http://127.0.0.1', origin: 'https://h' });
  expect(own().domain).toBe('boxes.h');
  rmSync(join(folder, 'api-key'));
  expect(own).toThrow(`No platform runs on ${folder}`);
});
