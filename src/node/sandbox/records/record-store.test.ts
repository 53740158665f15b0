import { expect, test } from 'bun:test';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pausedRecord, type RunningRecord } from './record.ts';
import { createRecords } from './record-store.ts';
import { recordKey } from './record-key.ts';

const network = {
  internetAccess: true,
  headerRules: { 'a.com': { Authorization: 'the-header-value' } },
  egressProxy: { address: 'b.com:1', username: 'u', password: 'the-password' },
};
const image = { templateId: 't', buildId: 'b', layers: [], defaultUser: 'user', defaultWorkdir: '', buildEnv: {} };
const known = {
  sandboxId: 's',
  executionId: 'e',
  controlToken: 'c',
  bootId: 'b',
  agentDir: '/a',
  startedAtMs: 1,
  resources: { cpuCount: 1, memoryMiB: 1, diskMiB: 1 },
  image,
  driver: 'crun' as const,
  volumes: [],
};
const record: RunningRecord = {
  state: 'running',
  ...known,
  slot: 1,
  pid: 2,
  startTicks: 3,
  network,
  resumedFrom: null,
};

test('the secrets of a policy are on the disk for nobody to read, and there again after a restart', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'atoll-records-'));
  try {
    const records = createRecords(join(directory, 'sandboxes'), recordKey(directory));
    records.keptOf('s');
    await records.write(record);
    const path = join(directory, 'sandboxes/s/record.json');
    for (const secret of ['the-header-value', 'the-password', 'a.com'])
      expect(readFileSync(path, 'utf8')).not.toContain(secret);
    expect([statSync(path).mode & 0o777, statSync(join(directory, 'record-key')).mode & 0o777]).toEqual([0o600, 0o600]);
    expect(createRecords(join(directory, 'sandboxes'), recordKey(directory)).list()).toEqual([
      { sandboxId: 's', record },
    ]);
    // The next owner of the folder finds nothing of it.
    const other = createRecords(join(directory, 'others'), recordKey(directory));
    other.keptOf('s');
    await other.write(record);
    other.forget('s');
    expect(other.list()).toEqual([{ sandboxId: 's', record: undefined }]);
    await other.remove('s');
    expect(other.list()).toEqual([]);
    expect(readFileSync(join(directory, 'others-spare/s/record.json.new'), 'utf8')).toBe('{');
    // After a restart of the host nothing gets out until somebody says what may.
    rmSync(join(directory, 'record-key'));
    expect(createRecords(join(directory, 'sandboxes'), recordKey(directory)).list()).toEqual([
      { sandboxId: 's', record: { ...record, network: { internetAccess: false } } },
    ]);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

test('a record that a loss of power took is nothing to look at, unless the sandbox was paused', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'atoll-records-'));
  const open = () => createRecords(join(directory, 'sandboxes'), recordKey(directory));
  const pathOf = (sandboxId: string) => join(directory, 'sandboxes', sandboxId, 'record.json');
  const paused = pausedRecord(record, 'filesystem', null);
  try {
    const records = open();
    for (const sandboxId of ['ran', 'resumed']) records.keptOf(sandboxId);
    await records.write({ ...record, sandboxId: 'ran' });
    await records.write({ ...paused, sandboxId: 'resumed' });
    await records.write({ ...record, sandboxId: 'resumed' });
    for (const sandboxId of ['ran', 'resumed']) writeFileSync(pathOf(sandboxId), '\0'.repeat(100));
    const found = () =>
      open()
        .list()
        .toSorted((a, b) => (a.sandboxId < b.sandboxId ? -1 : 1));
    const damaged = { record: undefined, damaged: expect.stringContaining('JSON') };
    // Only a loss of power takes what was written: before the host has restarted, nobody can say what it was.
    expect(found()).toEqual([
      { sandboxId: 'ran', ...damaged },
      { sandboxId: 'resumed', ...damaged },
    ]);
    rmSync(join(directory, 'record-key'));
    expect(found()).toEqual([
      { sandboxId: 'ran', record: undefined },
      { sandboxId: 'resumed', ...damaged },
    ]);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

test('64 folders are kept for the sandboxes to come, and no more', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'atoll-record-'));
  try {
    const records = createRecords(join(directory, 'sandboxes'), recordKey(directory));
    for (let number = 0; number < 66; number++) records.keptOf(`s${number}`);
    for (let number = 0; number < 66; number++) await records.write({ ...record, sandboxId: `s${number}` });
    for (let number = 0; number < 66; number++) {
      records.forget(`s${number}`);
      await records.remove(`s${number}`);
    }
    expect(readdirSync(join(directory, 'sandboxes-spare'))).toHaveLength(64);
    expect(records.list()).toEqual([]);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
