import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readSettings } from './settings.ts';
import { storePlaceOf } from './store-place.ts';

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'atoll-secret-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const bucket = { ATOLL_STORE: 's3://bucket/clusters', ATOLL_STORE_KEY_ID: 'id' };
const placeOf = (environment: Record<string, string>) => storePlaceOf(readSettings(environment));

test('no store is nowhere, and a directory is its path', () => {
  expect(placeOf({})).toBeUndefined();
  expect(placeOf({ ATOLL_STORE: '/srv/store' })).toEqual({ kind: 'directory', path: '/srv/store' });
});

test('a bucket comes with its key, whose secret is a setting or in a file', () => {
  const file = join(folder, 'secret');
  writeFileSync(file, 'from-file');
  const place = {
    kind: 's3',
    bucket: 'bucket',
    prefix: 'clusters',
    endpoint: undefined,
    region: 'us-east-1',
    keyId: 'id',
  };
  expect(placeOf({ ...bucket, ATOLL_STORE_SECRET: 'set' })).toEqual({ ...place, secret: 'set' } as never);
  expect(placeOf({ ...bucket, ATOLL_STORE_SECRET_FILE: file })).toEqual({ ...place, secret: 'from-file' } as never);
});

test('a file that is not there or empty has no secret, and that is said', () => {
  writeFileSync(join(folder, 'empty'), '');
  for (const name of ['empty', 'nowhere'])
    expect(() => placeOf({ ...bucket, ATOLL_STORE_SECRET_FILE: join(folder, name) })).toThrow(
      `ATOLL_STORE_SECRET_FILE: there is no secret in ${folder}/${name}`,
    );
});
