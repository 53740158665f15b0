import { mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, spyOn, test } from 'bun:test';
import { sealedBytes, sealFrames } from '../../../base/crypto/frames.ts';
import { Reservations } from '../../space/reservations.ts';
import type { SandboxRecord } from '../records/record.ts';
import { createRecords } from '../records/record-store.ts';
import { recordKey } from '../records/record-key.ts';
import { Sandboxes } from '../state/sandboxes.ts';
import { archiveBytes, planFiles, readArchive } from './archive.ts';
import { type CarryParts, createCarrier } from './carrier.ts';

let folder = '';
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'atoll-carrier-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const target = { sandboxId: 's', executionId: 'e' };
const record = { ...target, state: 'paused', kept: 'memory', driver: 'crun', network: { internetAccess: true } };

/** Paths that were written out to the disk, each as it was named then. */
async function writtenOut(): Promise<{ paths: string[] } & Disposable> {
  await using any = await open(folder);
  const handles = Object.getPrototypeOf(any) as FileHandle;
  const { sync } = handles;
  const paths: string[] = [];
  const spy = spyOn(handles, 'sync').mockImplementation(function (this: FileHandle) {
    paths.push(readlinkSync(`/proc/self/fd/${this.fd}`));
    return sync.call(this);
  });
  return { paths, [Symbol.dispose]: () => spy.mockRestore() };
}

test('memory that comes from another machine is on the disk before the sandbox is recorded as paused', async () => {
  const [from, key] = [join(folder, 'from'), randomBytes(32)];
  mkdirSync(join(from, 'memory'), { recursive: true });
  for (const path of ['disk.img', 'memory/pages-1.img', 'memory/core-1.img']) writeFileSync(join(from, path), path);
  const header = { version: 1, record, agent: 'a', files: planFiles(from, () => false) } as const;
  using synced = await writtenOut();
  const records = createRecords(join(folder, 'sandboxes'), recordKey(folder));
  const before: string[] = [];
  const carrier = createCarrier({
    layout: { data: folder },
    sandboxes: new Sandboxes(),
    records: {
      ...records,
      write(written: SandboxRecord) {
        before.push(...synced.paths);
        return records.write(written);
      },
    },
    kept: { writeChecksums: async () => {} },
    drivers: { names: ['crun'] },
    logs: { write() {} },
    memoryFacts: { agent: 'a' },
    agentDir: '/agent',
    drafts: { find: () => undefined },
    space: { reserve: (_what: string, bytes: number) => new Reservations().add(bytes) },
  } as unknown as CarryParts);
  const sizeBytes = sealedBytes(archiveBytes(header));
  const arrival = await carrier.receive(target, key.toString('base64url'), sizeBytes);
  await arrival.take(sealFrames(key, readArchive(from, header)));
  expect(await arrival.keep()).toMatchObject({ ...target, kept: 'memory' });
  const ends = ['/disk.img', '/memory/pages-1.img', '/memory/core-1.img', '/memory'];
  expect(ends.filter(end => !before.some(path => path.endsWith(end)))).toEqual([]);
  expect(readFileSync(join(records.keptOf('s'), 'memory/pages-1.img'), 'utf8')).toBe('memory/pages-1.img');
});
