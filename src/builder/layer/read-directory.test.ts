import { expect, test } from 'bun:test';
import {
  chmodSync,
  closeSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createImageWriter } from '../erofs/writer.ts';
import { attributesOf, readUpper } from './read-directory.ts';

test('a directory that holds sockets alone stays, and one that holds what is excluded alone goes', () => {
  const dir = mkdtempSync(join(tmpdir(), 'atoll-upper-'));
  const output = openSync(join(dir, 'image'), 'wx+');
  const upper = join(dir, 'upper');
  const listeners = ['run/only', 'run/deep/below'].map(path => {
    mkdirSync(join(upper, path), { recursive: true });
    return Bun.listen({ unix: join(upper, path, 'socket'), socket: { data() {} } });
  });
  try {
    chmodSync(join(upper, 'run/only'), 0o710);
    mkdirSync(join(upper, 'platform/own'), { recursive: true });
    writeFileSync(join(upper, 'platform/own/file'), '');
    const marks = new Map([['run/only', new Map([['trusted.overlay.opaque', Buffer.from('y')]])]]);
    const writer = createImageWriter(output, { bytesMax: 1 << 20, inodesMax: 100 });
    const root = readUpper({ upper, marks, excluded: new Set(['platform/own/file']) }, writer);
    expect([...(root?.entries.keys() ?? [])]).toEqual(['run']);
    const run = root?.entries.get('run');
    const entries = run?.kind === 'directory' ? run.entries : new Map();
    expect(entries.get('only')).toMatchObject({ kind: 'directory', opaque: true, attributes: { mode: 0o710 } });
    expect(entries.get('deep')).toMatchObject({ kind: 'directory', opaque: false });
  } finally {
    for (const listener of listeners) listener.stop(true);
    closeSync(output);
    rmSync(dir, { recursive: true });
  }
});

test('a tree is read with the same descriptors, however deep it is', () => {
  const dir = mkdtempSync(join(tmpdir(), 'atoll-upper-'));
  const output = openSync(join(dir, 'image'), 'wx+');
  try {
    const deep = join(dir, 'upper', ...Array.from({ length: 300 }, () => 'd'));
    mkdirSync(deep, { recursive: true });
    writeFileSync(join(deep, 'file'), '');
    const writer = createImageWriter(output, { bytesMax: 1 << 20, inodesMax: 1000 });
    const before = readdirSync('/proc/self/fd').length;
    let there = 0;
    const counting = {
      ...writer,
      beginFile(...given: Parameters<typeof writer.beginFile>) {
        there = readdirSync('/proc/self/fd').length;
        return writer.beginFile(...given);
      },
    };
    readUpper({ upper: join(dir, 'upper'), marks: new Map(), excluded: new Set() }, counting);
    expect(there).toBeGreaterThan(0);
    expect(there - before).toBeLessThan(10);
  } finally {
    closeSync(output);
    rmSync(dir, { recursive: true });
  }
});

test('times before 1970 keep their fraction', () => {
  const dir = mkdtempSync(join(tmpdir(), 'atoll-times-'));
  try {
    // The runtime can't set such a time.
    expect(Bun.spawnSync(['touch', '-d', '1969-12-31T23:59:58.5Z', dir]).exitCode).toBe(0);
    expect(attributesOf(lstatSync(dir, { bigint: true }), new Map())).toMatchObject({
      mtimeSeconds: -2,
      mtimeNanoseconds: 500_000_000,
    });
  } finally {
    rmSync(dir, { recursive: true });
  }
});
