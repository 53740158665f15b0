import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { configCommand } from './config.ts';
import { effectiveSettings, settingsFileOf } from './file.ts';

let dataDir: string;
beforeEach(() => void (dataDir = mkdtempSync(join(tmpdir(), 'atoll-settings-'))));
afterEach(() => rmSync(dataDir, { recursive: true }));
const write = (text: string) => writeFileSync(settingsFileOf(dataDir), text);

test('the file says what the environment does not; an empty variable hides nothing', () => {
  write(
    '# my installation\n\nATOLL_PORT = ' +
      '4000\nATOLL_DATABASE_URL="postgres://atoll@db/atoll"\nATOLL_DOMAIN=example.com\n',
  );
  const own = { ATOLL_DATA_DIR: dataDir, ATOLL_DOMAIN: 'other.example', ATOLL_PORT: '' };
  expect(effectiveSettings(own)).toMatchObject({
    dataDir,
    port: 4000,
    databaseUrl: 'postgres://atoll@db/atoll',
    domain: 'other.example',
    host: '127.0.0.1',
  });
  rmSync(settingsFileOf(dataDir));
  expect(effectiveSettings(own)).toMatchObject({ port: 3000, databaseUrl: undefined });
});

test('all faults of the file are reported at once, each with its line', () => {
  write('ATOLL_PROT=1\nexport ATOLL_PORT=2\nATOLL_PORT=3\nATOLL_PORT=4\nATOLL_DATA_DIR=/x\njust words\n');
  expect(() => effectiveSettings({ ATOLL_DATA_DIR: dataDir })).toThrow(
    [
      /line 1: 'ATOLL_PROT' is not a setting/,
      /line 2: 'export ATOLL_PORT' is not a setting/,
      /line 4: ATOLL_PORT is set a second time/,
      /line 5: ATOLL_DATA_DIR says where this file is/,
      /line 6: must be NAME=value/,
    ].reduce((all, one) => new RegExp(`${all.source}[\\s\\S]*${one.source}`)),
  );
  write('ATOLL_PORT=seventy\n');
  expect(() => effectiveSettings({ ATOLL_DATA_DIR: dataDir })).toThrow("ATOLL_PORT is 'seventy' and must be a port");
  write('#'.repeat(70_000));
  expect(() => effectiveSettings({ ATOLL_DATA_DIR: dataDir })).toThrow('longer than 64 KiB');
});

test('`atoll config` shows each value and its source, and no password', async () => {
  write('ATOLL_DATABASE_URL=postgres://atoll:t0psecret@db/atoll\nOTEL_EXPORTER_OTLP_HEADERS=a=t0psecret\n');
  let out = '';
  const terminal = { out: (text: string) => void (out += text), err: () => {}, isInteractive: false };
  expect(await configCommand({ ATOLL_DATA_DIR: dataDir, ATOLL_PORT: '5000' }).run([], terminal)).toBe(0);
  expect(out).toMatch(/ATOLL_PORT +5000 +environment/);
  expect(out).toMatch(/ATOLL_DATABASE_URL +postgres:\/\/\(hidden\)@db\/atoll +settings file/);
  expect(out).toMatch(/ATOLL_HOST +127.0.0.1 +default/);
  expect(out).not.toContain('t0psecret');
});

test('quotes around the whole of a value are none of it, and others are', () => {
  for (const [written, name] of Object.entries({
    '"my name"': 'my name',
    "'my name'": 'my name',
    "it's": "it's",
    '"half': '"half',
    "half'": "half'",
    '"': '"',
    'a=b': 'a=b',
  })) {
    write(`OTEL_SERVICE_NAME = ${written} \r\n#OTEL_SERVICE_NAME=other\n  # and a comment\n`);
    expect(effectiveSettings({ ATOLL_DATA_DIR: dataDir }).serviceName).toBe(name);
  }
});

test('a file may have 64 KiB', () => {
  const line = 'ATOLL_PORT=4000\n';
  write(line + '#'.repeat(64 * 1024 - line.length));
  expect(effectiveSettings({ ATOLL_DATA_DIR: dataDir }).port).toBe(4000);
  write(line + '#'.repeat(64 * 1024 - line.length + 1));
  expect(() => effectiveSettings({ ATOLL_DATA_DIR: dataDir })).toThrow('longer than 64 KiB');
});
