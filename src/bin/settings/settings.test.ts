import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { repository } from '../repository.ts';
import { isLoopback, isWildcard, readSettings, settingsTable } from './settings.ts';

test('an empty environment gives the documented defaults', () => {
  expect(readSettings({ PATH: '/bin' })).toMatchObject({
    dataDir: '/var/lib/atoll',
    port: 3000,
    domain: 'localhost',
    host: '127.0.0.1',
  });
});

test('an empty variable counts as not set', () => {
  expect(readSettings({ ATOLL_PORT: '', ATOLL_BASE_IMAGE: '' })).toMatchObject({ port: 3000, baseImage: undefined });
});

const wrong: Record<string, string> = {
  ATOLL_DATA_DIR: 'relative/path',
  ATOLL_PORT: '65536',
  ATOLL_DOMAIN: 'exa mple.com',
  ATOLL_LOG_LEVEL: 'loud',
  ATOLL_NAMESERVERS: '8.8.8.8,dns.example.org',
  ATOLL_DATABASE_URL: 'mysql://db',
  ATOLL_POOL_SIZE: '-1',
  ATOLL_HOST: 'all interfaces',
  ATOLL_PROT: '3000',
};

test('every wrong and every unknown variable is named, all in one error', () => {
  const failure = (() => {
    try {
      return readSettings(wrong);
    } catch (error) {
      return error;
    }
  })();
  expect(failure).toBeInstanceOf(AtollError);
  for (const [name, value] of Object.entries(wrong)) {
    expect((failure as AtollError).message).toContain(
      name === 'ATOLL_PROT' ? 'ATOLL_PROT is not a setting' : `${name} is '${value}' and must be`,
    );
  }
});

test('a certificate needs its key, and a port', () => {
  const files = { ATOLL_TLS_CERT: '/etc/cert.pem', ATOLL_TLS_KEY: '/etc/key.pem' };
  expect(readSettings({ ...files, ATOLL_TLS_PORT: '3443' })).toMatchObject({
    tlsPort: 3443,
    tlsCertificate: '/etc/cert.pem',
  });
  expect(() => readSettings(files)).toThrow('does nothing without ATOLL_TLS_PORT');
  expect(() => readSettings({ ATOLL_TLS_CERT: '/etc/cert.pem', ATOLL_TLS_PORT: '3443' })).toThrow('belong together');
});

test('the two ports are two', () => {
  expect(() => readSettings({ ATOLL_TLS_PORT: '3000' })).toThrow('ATOLL_TLS_PORT is 3000, as is ATOLL_PORT');
  expect(() => readSettings({ ATOLL_PORT: '443', ATOLL_TLS_PORT: '443' })).toThrow('set it to another one');
  expect(readSettings({ ATOLL_PORT: '0', ATOLL_TLS_PORT: '0' })).toMatchObject({ port: 0, tlsPort: 0 });
});

test('the configuration document has a row with name and default for each setting, and no other', () => {
  const text = readFileSync(join(repository, 'docs/configuration.md'), 'utf8');
  const rows = [...text.matchAll(/^\| `((?:ATOLL|OTEL)_\w+)` \| (.*?) \|/gm)].map(([, name, fallback]) => [
    name,
    fallback,
  ]);
  expect(rows.sort()).toEqual(
    Object.values(settingsTable)
      .map(({ variable, fallback }) => [variable, fallback === undefined ? 'none' : `\`${fallback}\``])
      .sort(),
  );
});

test('headers for the collector of traces are read as OpenTelemetry writes them, and never repeated', () => {
  expect(
    readSettings({ OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Basic%20abc==,x-scope = team' }).otlpHeaders,
  ).toEqual({ authorization: 'Basic abc==', 'x-scope': 'team' });
  const failure = (() => {
    try {
      return String(readSettings({ OTEL_EXPORTER_OTLP_HEADERS: 'a=b,Bearer t0psecret' }));
    } catch (error) {
      return String(error);
    }
  })();
  expect(failure).toContain('OTEL_EXPORTER_OTLP_HEADERS must be');
  expect(failure).not.toContain('t0psecret');
});

test('drivers are chosen for the installation and for templates: to gVisor by any name, to crun by ID', () => {
  expect(readSettings({}).driver).toBe('crun');
  const { driver, templateDrivers } = readSettings({
    ATOLL_DRIVER: 'gvisor',
    ATOLL_TEMPLATE_DRIVERS: `abcdefghij0123456789=crun, Acme/Tools=gvisor`,
  });
  expect(driver).toBe('gvisor');
  expect([...(templateDrivers ?? [])]).toEqual([
    ['abcdefghij0123456789', 'crun'],
    ['acme/tools', 'gvisor'],
  ]);
  for (const wrong of ['base', 'base=', '=gvisor', 'base=docker', 'base=gvisor,', 'base=crun', 'acme/tools=crun'])
    expect(() => readSettings({ ATOLL_TEMPLATE_DRIVERS: wrong })).toThrow('ATOLL_TEMPLATE_DRIVERS');
  expect(() => readSettings({ ATOLL_DRIVER: 'kvm' })).toThrow('ATOLL_DRIVER');
});

test.each([
  ['ATOLL_CPU_OVERCOMMIT', 1, 64],
  ['ATOLL_ISOLATION_SECONDS', 1, 3600],
  ['ATOLL_METRICS_HOURS', 1, 720],
  ['ATOLL_TEAM_METRICS_DAYS', 1, 400],
  ['ATOLL_POOL_SIZE', 0, 64],
  ['ATOLL_VOLUME_TOKEN_HOURS', 1, 8760],
  ['ATOLL_FROZEN_SECONDS', 0, 3600],
] as const)('%s is a number from %d to %d', (variable, min, max) => {
  for (const value of [min, max]) expect(() => readSettings({ [variable]: String(value) })).not.toThrow();
  for (const value of [min - 1, max + 1])
    expect(() => readSettings({ [variable]: String(value) })).toThrow(`${variable} is '${value}' and must be`);
});

test('an address is of this machine alone, or means all of its addresses, or neither', () => {
  expect(['127.0.0.1', '127.0.0.2', '::1', '0.0.0.0', '::', '10.0.0.1'].map(isLoopback)).toEqual([
    true,
    true,
    true,
    false,
    false,
    false,
  ]);
  expect(['0.0.0.0', '::', '127.0.0.1', '10.0.0.1'].map(isWildcard)).toEqual([true, true, false, false]);
});

test('a bucket needs a key and one place for its secret, and without a bucket they do nothing', () => {
  const key = { ATOLL_STORE: 's3://bucket', ATOLL_STORE_KEY_ID: 'id' };
  const [secret, file] = [{ ATOLL_STORE_SECRET: 'x' }, { ATOLL_STORE_SECRET_FILE: '/etc/secret' }];
  for (const where of [secret, file]) expect(readSettings({ ...key, ...where })).toMatchObject({ storeKeyId: 'id' });
  expect(() => readSettings({ ...key, ...secret, ...file })).toThrow('two places for one secret');
  for (const part of [key, { ATOLL_STORE: 's3://bucket', ...secret }, { ATOLL_STORE: 's3://bucket' }])
    expect(() => readSettings(part)).toThrow('needs ATOLL_STORE_KEY_ID, and ATOLL_STORE_SECRET or');
  for (const store of [undefined, '/srv/store'])
    expect(() => readSettings({ ...secret, ATOLL_STORE: store })).toThrow(
      /^ATOLL_STORE_SECRET does nothing without ATOLL_STORE=s3:/,
    );
  expect(readSettings({ ATOLL_STORE: '/srv/store' }).store).toEqual({ kind: 'directory', path: '/srv/store' });
});
