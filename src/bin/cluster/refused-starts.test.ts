import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { apiKeyFile, machineIdentityFile } from '../../api/installation/data-directory.ts';
import { silentLog } from '../../base/telemetry/log.ts';
import { recordInstance } from '../platform/instance.ts';
import { startPlatform } from '../platform/platform.ts';
import { readSettings } from '../settings/settings.ts';
import { startControl } from './control.ts';
import { joinBefore, startMachine } from './machine.ts';

let dataDir: string;
beforeEach(() => void (dataDir = mkdtempSync(join(tmpdir(), 'atoll-refused-'))));
afterEach(() => rmSync(dataDir, { recursive: true }));

const optionsOf = (more: Record<string, string>) => ({
  // Already aborted: a start that is not refused ends as soon as it can.
  ...{ log: silentLog, environment: {}, onPhase() {}, signal: AbortSignal.abort(), invitation: undefined },
  settings: readSettings({ ATOLL_DATA_DIR: dataDir, ...more }),
});
const address = { ATOLL_NODE_ADDRESS: '127.0.0.1:7000' };
const database = { ATOLL_DATABASE_URL: 'postgres://a@127.0.0.1:1/a' };
const refused = (code: string, text: string) => ({ code, message: expect.stringContaining(text) });

test('a machine alone has no store of a cluster', async () => {
  await expect(startPlatform(optionsOf({ ATOLL_STORE: '/shared' }))).rejects.toMatchObject(
    refused('invalid', 'ATOLL_STORE is for the control processes'),
  );
  expect(readdirSync(dataDir)).toEqual([]);
});

test('control has its state in PostgreSQL', async () => {
  await expect(startControl(optionsOf({}))).rejects.toMatchObject(refused('precondition', 'set ATOLL_DATABASE_URL'));
  expect(readdirSync(dataDir)).toEqual([]);
});

test('a machine of a cluster has an address', async () => {
  const noAddress = refused('invalid', 'ATOLL_NODE_ADDRESS is not set');
  await expect(startMachine(optionsOf({}))).rejects.toMatchObject(noAddress);
  await expect(joinBefore(optionsOf({}).settings, undefined)).rejects.toMatchObject(noAddress);
  expect(readdirSync(dataDir)).toEqual([]);
});

test('a data directory of another role is left alone', async () => {
  writeFileSync(apiKeyFile(dataDir), 'key');
  const isControls = refused('precondition', 'is the data directory of a control process');
  await expect(startMachine(optionsOf(address))).rejects.toMatchObject(isControls);
  await expect(joinBefore(optionsOf(address).settings, undefined)).rejects.toMatchObject(isControls);
  writeFileSync(machineIdentityFile(dataDir), '{}');
  const isMachines = refused('precondition', 'is the data directory of a machine of a cluster');
  await expect(startControl(optionsOf(database))).rejects.toMatchObject(isMachines);
  await expect(startPlatform(optionsOf({}))).rejects.toMatchObject(isMachines);
  expect(readdirSync(dataDir)).toHaveLength(2);
});

test('a machine joins before it is started, or has joined', async () => {
  await expect(joinBefore(optionsOf(address).settings, undefined)).rejects.toMatchObject(
    refused('precondition', 'This machine has not joined a cluster'),
  );
  expect(readdirSync(dataDir)).toEqual([]);
  const identity = { certificate: 'c', key: 'k', authority: 'a' };
  writeFileSync(machineIdentityFile(dataDir), JSON.stringify(identity));
  await joinBefore(optionsOf(address).settings, undefined);
});

test('a machine that runs is not started a second time, nor joined anew', async () => {
  recordInstance(dataDir);
  await expect(startMachine(optionsOf(address))).rejects.toThrow(`process ${process.pid}`);
  const invitation = { control: 'http://127.0.0.1:1', token: 'token' };
  await expect(joinBefore(optionsOf(address).settings, invitation)).rejects.toThrow(`process ${process.pid}`);
});
