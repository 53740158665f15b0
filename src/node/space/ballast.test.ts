import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createBallast, makeRoomToStart } from './ballast.ts';

let dataDir: string;
beforeEach(() => (dataDir = mkdtempSync(join(tmpdir(), 'atoll-ballast-'))));
afterEach(() => rmSync(dataDir, { recursive: true }));

const mib = 1024 ** 2;
const file = () => join(dataDir, 'ballast');
const takes = () => (existsSync(file()) ? statSync(file()).blocks * 512 : 0);
const look = (ballast: { follow(freeBytes: number): void }, freeMiB: number, times = 1) => {
  for (let i = 0; i < times; i++) ballast.follow(freeMiB * mib);
};

test('there is ballast where there is room for it, and it takes that room', () => {
  const ballast = createBallast(dataDir);
  look(ballast, 512, 20);
  expect(takes()).toBe(0);
  look(ballast, 513);
  expect(takes()).toBe(64 * mib);
});

test('it is given up when the disk has been full for a while, and made again when there is room', () => {
  const ballast = createBallast(dataDir);
  look(ballast, 1000);
  look(ballast, 32, 20);
  expect(takes()).toBe(64 * mib);
  look(ballast, 40);
  look(ballast, 31, 10);
  expect(takes()).toBe(64 * mib);
  look(ballast, 31);
  expect(existsSync(file())).toBe(false);
  look(ballast, 500, 20);
  expect(takes()).toBe(0);
  look(ballast, 513);
  expect(takes()).toBe(64 * mib);
});

test('a program that fills the disk right now does not get it: a mebibyte less at a look restarts the wait', () => {
  const ballast = createBallast(dataDir);
  look(ballast, 1000);
  look(ballast, 31);
  for (let freeMiB = 29; freeMiB > 3; freeMiB -= 1.5) look(ballast, freeMiB);
  expect(takes()).toBe(64 * mib);
  for (let freeMiB = 3; freeMiB > 0.5; freeMiB -= 0.2) look(ballast, freeMiB);
  expect(takes()).toBe(0);
});

test('ballast of an earlier run is recognized, and a file of that name without its own room does not count', () => {
  look(createBallast(dataDir), 1000);
  const second = createBallast(dataDir);
  look(second, 1, 11);
  expect(existsSync(file())).toBe(false);
  writeFileSync(file(), '');
  look(createBallast(dataDir), 1000);
  expect(takes()).toBe(64 * mib);
});

test('a start on a full disk gives it up at once, another keeps it', () => {
  makeRoomToStart(dataDir, 0);
  look(createBallast(dataDir), 1000);
  makeRoomToStart(dataDir, 32 * mib);
  expect(takes()).toBe(64 * mib);
  makeRoomToStart(dataDir, 32 * mib - 1);
  expect(existsSync(file())).toBe(false);
});
