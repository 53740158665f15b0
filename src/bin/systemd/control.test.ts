import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OwnInstallation } from '../../cli/operator/down.ts';
import type { ServiceRole } from '../../cli/operator/install.ts';
import type { HostFacts } from '../preflight/facts.ts';
import { recordInstance } from '../platform/instance.ts';
import { serviceControl } from './control.ts';
import { thisSystemd, type Systemd } from './systemctl.ts';
import { roleOf } from './unit.ts';

let folder = '';
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'atoll-service-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const dataDir = () => join(folder, 'data');
const fileOf = (name: string) => join(folder, `${name}.service`);
const settings = () => readFileSync(join(dataDir(), 'settings'), 'utf8');
const database = 'postgres://user:secret@db/atoll';

const able: HostFacts = {
  ...{ system: 'linux', architecture: 'x64', kernel: '6.12.0', userId: 0, hasProgram: () => true },
  placeOf: () => ({ isDirectory: true, ownerId: 0 }),
  fileSystemOf: () => 0xef53n,
  isReadOnly: () => false,
  freeBytesOf: () => 20 * 2 ** 30,
};

type Options = {
  environment?: Record<string, string>;
  facts?: Partial<HostFacts>;
  /** The service runs. */
  active?: boolean;
  /** An installation exists. */
  isThere?: boolean;
  /** Fails once. */
  fails?: string;
};

/** A machine that runs nothing: `did` records what is asked of it, in order. */
function machine({ environment = {}, facts = {}, active = false, isThere = true, fails = '' }: Options = {}) {
  const [did, said]: [string[], string[]] = [[], []];
  const systemd: Systemd = {
    require: name => void did.push(`require ${name}`),
    fileOf,
    isActive: async () => active,
    async run(...args) {
      did.push(args.join(' '));
      if (fails === args[0]) throw new Error(`${fails} failed`);
      return '';
    },
  };
  const own: OwnInstallation = {
    isThere: () => isThere,
    require() {},
    hasSandboxes: () => true,
    announceDown: goesDown => void did.push(goesDown ? 'announce' : 'run on'),
    endPlatform: async () => did.push('end platform') > 0,
    endSandboxes: async ({ all }) => (did.push(`end ${all ? 'all' : 'running'} sandboxes`), {}),
  };
  const control = serviceControl({ ATOLL_DATA_DIR: dataDir(), ...environment }, own, {
    systemd,
    facts: { ...able, ...facts },
  });
  const terminal = { out() {}, err: (text: string) => void said.push(text), isInteractive: false };
  return {
    ...{ did, said },
    install: (role: ServiceRole = 'platform', start = true, name = 'atoll') =>
      control.install(name, { start, role, invitation: undefined }, terminal),
    uninstall: (data = false) => control.uninstall('atoll', { data }, terminal),
  };
}
const enabled = ['require atoll', 'daemon-reload', 'enable atoll.service'];
const error = (code: string, message: string) =>
  expect.objectContaining({ code, message: expect.stringContaining(message) }) as unknown;

test('a service is written, enabled and started, in a data directory that is its owner’s alone', async () => {
  const { install, did, said } = machine();
  expect(await install()).toBe(fileOf('atoll'));
  expect(did).toEqual([...enabled, 'restart atoll.service']);
  const text = readFileSync(fileOf('atoll'), 'utf8');
  expect([roleOf(text), text.includes(`ATOLL_DATA_DIR=${dataDir()}`)]).toEqual(['platform', true]);
  const mode = (path: string) => statSync(path).mode & 0o777;
  expect([mode(dataDir()), mode(fileOf('atoll'))]).toEqual([0o700, 0o644]);
  expect(said).toEqual(['Starting atoll; a first start makes the base template, which takes a minute or more.\n']);
  expect(existsSync(join(dataDir(), 'settings'))).toBeFalse();
});

test('a service that is not to start is enabled and no more; one that is there is written anew', async () => {
  await machine().install();
  const { install, did, said } = machine({ active: true });
  await install('platform', false);
  expect([did, said]).toEqual([enabled, []]);
});

test('a service that does not start says where to look', async () => {
  await expect(machine({ fails: 'restart' }).install()).rejects.toEqual(
    error('unavailable', '`journalctl -u atoll -n 20` has what it said. Mend it and run `systemctl start atoll`'),
  );
});

test('a machine that can’t do is refused before anything is changed; control needs no such machine', async () => {
  const facts = { kernel: '5.10.0' };
  await expect(machine({ facts }).install()).rejects.toEqual(error('precondition', '5.10.0'));
  await expect(machine({ facts }).install('node')).rejects.toEqual(error('precondition', '5.10.0'));
  expect(existsSync(dataDir())).toBeFalse();
  const { install, said } = machine({ facts, environment: { ATOLL_DATABASE_URL: database } });
  await install('control');
  expect(roleOf(readFileSync(fileOf('atoll'), 'utf8'))).toBe('control');
  expect(said.at(-1)).toBe('Starting atoll.\n');
});

test('the room of a first start is asked for once, and of a platform alone', async () => {
  const facts = { freeBytesOf: () => 0 };
  await expect(machine({ facts }).install()).rejects.toEqual(error('no_space', 'MiB are free'));
  mkdirSync(dataDir());
  writeFileSync(join(dataDir(), 'api-key'), 'a key');
  await machine({ facts }).install();
});

test('control processes need a database that they share', async () => {
  const { install } = machine();
  await expect(install('control')).rejects.toEqual(error('precondition', 'set ATOLL_DATABASE_URL'));
  expect([existsSync(dataDir()), existsSync(fileOf('atoll'))]).toEqual([false, false]);
});

test('a unit of somebody else, or of another role, stays as it is', async () => {
  writeFileSync(fileOf('atoll'), '[Service]\nExecStart=/usr/bin/other\n');
  const { install, uninstall, did } = machine();
  await expect(install()).rejects.toEqual(error('conflict', `${fileOf('atoll')} is not the service of ${dataDir()}`));
  await expect(uninstall(true)).rejects.toEqual(error('conflict', 'is not the service of'));
  expect(readFileSync(fileOf('atoll'), 'utf8')).toContain('/usr/bin/other');
  rmSync(fileOf('atoll'));
  await machine().install();
  const before = readFileSync(fileOf('atoll'), 'utf8');
  await expect(machine({ environment: { ATOLL_DATABASE_URL: database } }).install('control')).rejects.toEqual(
    error('conflict', 'is the service of a machine alone, and not of a control process'),
  );
  expect([readFileSync(fileOf('atoll'), 'utf8') === before, did]).toEqual([true, ['require atoll', 'require atoll']]);
});

test('a data directory that another role has left is no place for a service', async () => {
  mkdirSync(dataDir());
  writeFileSync(join(dataDir(), 'cluster-identity'), '{}');
  await expect(machine().install()).rejects.toEqual(error('precondition', 'of a machine of a cluster, which'));
  expect(existsSync(fileOf('atoll'))).toBeFalse();
});

test('a platform that runs without the service is not taken for it', async () => {
  mkdirSync(dataDir());
  recordInstance(dataDir(), { url: 'http://127.0.0.1:3000', origin: 'http://127.0.0.1:3000' });
  await expect(machine().install()).rejects.toEqual(error('conflict', 'runs already, without the service'));
  recordInstance(dataDir());
  await expect(machine().install()).rejects.toEqual(error('conflict', 'runs already (process'));
  expect(existsSync(fileOf('atoll'))).toBeFalse();
  await machine({ active: true }).install();
});

test('what the environment sets is kept for the service, where only its owner reads it', async () => {
  const environment = { ATOLL_DATABASE_URL: database, ATOLL_DOMAIN: 'a.test', PATH: '/bin' };
  const { install, said } = machine({ environment });
  await install();
  expect(settings().split('\n').sort()).toEqual(['', `ATOLL_DATABASE_URL=${database}`, 'ATOLL_DOMAIN=a.test']);
  expect(statSync(join(dataDir(), 'settings')).mode & 0o777).toBe(0o600);
  expect(said[0]).toContain(`of this environment: written to ${join(dataDir(), 'settings')}.`);
  expect(said.join('')).not.toContain('secret');
  // What exists is not written again.
  const again = machine({ environment });
  await again.install();
  expect([settings().split('\n').length, again.said.length]).toEqual([3, 1]);
});

test('settings that a person has written stay, and what they lack comes on a line of its own', async () => {
  mkdirSync(dataDir());
  writeFileSync(join(dataDir(), 'settings'), '# mine\nATOLL_DOMAIN=a.test');
  await machine({ environment: { ATOLL_PORT: '4000', ATOLL_DOMAIN: 'a.test' } }).install();
  expect(settings()).toBe('# mine\nATOLL_DOMAIN=a.test\nATOLL_PORT=4000\n');
  await machine({ environment: { ATOLL_HOST: '127.0.0.2' } }).install();
  expect(settings()).toBe('# mine\nATOLL_DOMAIN=a.test\nATOLL_PORT=4000\nATOLL_HOST=127.0.0.2\n');
});

test('an environment that says otherwise than the settings file is refused, and nothing is changed', async () => {
  mkdirSync(dataDir());
  writeFileSync(join(dataDir(), 'settings'), 'ATOLL_DOMAIN=a.test\nATOLL_PORT=4000\n');
  const file = join(dataDir(), 'settings');
  await expect(machine({ environment: { ATOLL_DOMAIN: 'b.test', ATOLL_HOST: '127.0.0.2' } }).install()).rejects.toEqual(
    error('conflict', `ATOLL_DOMAIN of this environment is not what ${file} says`),
  );
  await expect(machine({ environment: { ATOLL_DOMAIN: 'b.test', ATOLL_PORT: '4001' } }).install()).rejects.toEqual(
    error('conflict', 'of this environment are not what'),
  );
  expect([settings(), existsSync(fileOf('atoll'))]).toEqual(['ATOLL_DOMAIN=a.test\nATOLL_PORT=4000\n', false]);
});

test('an uninstall ends the service, its platform and its sandboxes, before the unit goes', async () => {
  await machine().install();
  const { uninstall, did } = machine({ fails: 'reset-failed' });
  expect(await uninstall()).toBe(dataDir());
  const asked = ['require atoll', 'announce', 'disable --now atoll.service'];
  const ended = [...asked, 'end platform', 'end running sandboxes'];
  expect(did).toEqual([...ended, 'daemon-reload', 'reset-failed atoll.service']);
  expect([existsSync(fileOf('atoll')), existsSync(dataDir())]).toEqual([false, true]);
  await expect(uninstall()).rejects.toEqual(error('not_found', 'There is no service atoll'));
});

test('with its data everything of it goes', async () => {
  await machine().install();
  const { uninstall, did } = machine();
  await uninstall(true);
  expect([did[4], existsSync(dataDir())]).toEqual(['end all sandboxes', false]);
});

test('an uninstall that can’t end the service removes nothing', async () => {
  await machine().install();
  await expect(machine({ fails: 'disable' }).uninstall(true)).rejects.toThrow('disable failed');
  expect([existsSync(fileOf('atoll')), existsSync(dataDir())]).toEqual([true, true]);
});

test('a control process has no sandboxes to end, and where nothing is installed there is nothing', async () => {
  await machine({ environment: { ATOLL_DATABASE_URL: database } }).install('control');
  const control = machine();
  await control.uninstall();
  expect(control.did.slice(1, 5)).toEqual([
    ...['run on', 'disable --now atoll.service', 'end platform', 'daemon-reload'],
  ]);
  await machine({ environment: { ATOLL_DATABASE_URL: database } }).install('platform');
  const gone = machine({ isThere: false });
  await gone.uninstall();
  expect(gone.did.slice(1, 3)).toEqual(['disable --now atoll.service', 'daemon-reload']);
});

test('a name that is none of a service is refused', () => {
  for (const name of ['', 'Atoll', '1a', 'a.service', 'a/b', '-a', 'x'.repeat(32)])
    expect(() => thisSystemd.require(name)).toThrow(error('invalid', 'is no name for the service') as Error);
  expect(thisSystemd.fileOf('atoll')).toBe('/etc/systemd/system/atoll.service');
});
