import { afterAll, expect, test } from 'bun:test';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '../../base/telemetry/log.ts';
import { discardMemory, memoryOf, removeMemory } from './keep/memory-files.ts';
import { createRecords } from './records/record-store.ts';
import { deleteSnapshot } from './snapshot/snapshot-store.ts';

// Memory, disks and what builds leave are as large as tenants make them. While the host's disk removes them, the node
// still answers everybody else: a removal on the event loop would end before anything else has a turn.

/** This many files keep the disk busy as long as gigabytes in a few do. */
const folders = 10;
const filesEach = 200;
/** A removal off the event loop leaves thousands. */
const turnsLeast = 50;
/**
 * On a busy machine the removal may have a processor while the event loop waits for one: that proves nothing. A
 * removal on the event loop leaves no turns in any attempt.
 */
const triesMax = 20;

const directory = mkdtempSync(join(tmpdir(), 'atoll-removals-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const sandboxId = 'isandboxisandbox';
const snapshotId = '01234567-89ab-cdef-0123-456789abcdef';
const layout = { snapshots: join(directory, 'snapshots') };
const records = createRecords(join(directory, 'sandboxes'), { key: new Uint8Array(32), isNew: false });
const memory = memoryOf(records, sandboxId);
const snapshot = join(layout.snapshots, snapshotId);

function fill(directory: string): void {
  for (let folder = 0; folder < folders; folder++) {
    const path = join(directory, `${folder}`);
    mkdirSync(path, { recursive: true });
    for (let file = 0; file < filesEach; file++) writeFileSync(join(path, `${file}`), '');
  }
}

/** Counts the turns of the event loop while `remove` runs, until the folder is gone. */
async function turnsOf(remove: () => Promise<unknown>, folder: string): Promise<number> {
  let turns = 0;
  let isAnswered = false;
  const removed = remove().finally(() => (isAnswered = true));
  while (!isAnswered || existsSync(folder)) {
    turns++;
    await new Promise(setImmediate);
  }
  await removed;
  return turns;
}

const removals: [string, string, () => Promise<unknown>, string?][] = [
  ['a snapshot', snapshot, () => deleteSnapshot(layout, snapshotId), `${snapshot}.deleting`],
  ['a sandbox with its memory', memory, () => records.remove(sandboxId)],
  ['memory that a sandbox went on from', memory, () => discardMemory(records, sandboxId, silentLog), `${memory}.stale`],
  ['the memory of one that runs', memory, () => removeMemory(records, sandboxId)],
];

for (const [what, full, remove, meanwhile = full] of removals)
  test(`removing ${what} leaves turns of the event loop to others`, async () => {
    let turns = 0;
    for (let tries = 0; tries < triesMax && turns <= turnsLeast; tries++) {
      fill(full);
      turns = await turnsOf(remove, meanwhile);
      expect([existsSync(full), existsSync(meanwhile)]).toEqual([false, false]);
    }
    expect(turns).toBeGreaterThan(turnsLeast);
  });
