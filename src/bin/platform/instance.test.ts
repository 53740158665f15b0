import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  announceDown,
  endInstance,
  forgetInstance,
  goesDown,
  recordInstance,
  requireNoInstance,
  runningOrigin,
  runningUrl,
} from './instance.ts';

let dataDir: string;
let file: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'atoll-instance-'));
  file = join(dataDir, 'instance.json');
});
afterEach(() => rmSync(dataDir, { recursive: true }));

const ways = { url: 'http://127.0.0.1:3000', origin: 'https://h:3443' };

/** What another process has recorded about itself. */
function recordOther(pid: number, more: object = {}) {
  const startTicks = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[19];
  writeFileSync(file, JSON.stringify({ pid, startTicks, ...more }));
}

test('a platform that runs is found, and a second one is refused where the first is reached', () => {
  expect(() => requireNoInstance(dataDir)).not.toThrow();
  recordInstance(dataDir);
  expect([runningUrl(dataDir), runningOrigin(dataDir)]).toEqual([undefined, undefined]);
  expect(() => requireNoInstance(dataDir)).toThrow(`(process ${process.pid}). End it with`);
  recordInstance(dataDir, ways);
  expect([runningUrl(dataDir), runningOrigin(dataDir)]).toEqual([ways.url, ways.origin]);
  expect(() => requireNoInstance(dataDir)).toThrow(`(process ${process.pid}, at https://h:3443). End it with`);
  forgetInstance(dataDir);
  expect([existsSync(file), runningUrl(dataDir)]).toEqual([false, undefined]);
});

test('a release before this one has one way for commands and browsers', () => {
  recordOther(process.pid, { url: ways.url });
  expect(runningOrigin(dataDir)).toBe(ways.url);
});

test('another process that has this number by now is no platform', () => {
  writeFileSync(file, JSON.stringify({ pid: process.pid, startTicks: '1', ...ways }));
  expect(runningUrl(dataDir)).toBeUndefined();
  writeFileSync(file, JSON.stringify({ pid: process.pid, ...ways }));
  expect(runningUrl(dataDir)).toBeUndefined();
  writeFileSync(file, '{"pid":');
  expect(runningUrl(dataDir)).toBeUndefined();
});

test('an ending process does not remove the record of its successor', () => {
  recordOther(process.ppid, ways);
  forgetInstance(dataDir);
  expect(runningUrl(dataDir)).toBe(ways.url);
});

test('a platform learns that its sandboxes are ended after it', () => {
  announceDown(dataDir, true);
  expect([existsSync(file), goesDown(dataDir)]).toEqual([false, false]);
  recordInstance(dataDir, ways);
  expect(goesDown(dataDir)).toBe(false);
  announceDown(dataDir, true);
  expect([goesDown(dataDir), runningUrl(dataDir), runningOrigin(dataDir)]).toEqual([true, ways.url, ways.origin]);
  // Somebody stops it after an interrupted `down`.
  announceDown(dataDir, false);
  expect([goesDown(dataDir), runningUrl(dataDir)]).toEqual([false, ways.url]);
});

test('an end is waited for, and of a process that has ended there is nothing to wait for', async () => {
  expect(await endInstance(dataDir)).toBe(false);
  await using other = Bun.spawn(['sleep', '600']);
  recordOther(other.pid);
  expect(await endInstance(dataDir)).toBe(true);
  await other.exited;
  expect(other.signalCode).toBe('SIGTERM');
  expect(await endInstance(dataDir)).toBe(false);
});
