import { afterEach, beforeEach, expect, test } from 'bun:test';
import { closeSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Reservations } from '../../space/reservations.ts';
import { uploadExchange } from './upload-exchange.ts';

let dir: string;
let promised: Reservations;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'atoll-uploads-'));
  promised = new Reservations();
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const disk = { reserve: (_what: string, bytes: number) => promised.add(bytes) };
const upload = { teamId: 'team-1', hash: 'a'.repeat(64) };

async function begin(content: string, upload: { teamId: string; hash: string }) {
  const exchange = uploadExchange(dir, disk);
  const { writeId, descriptor } = await exchange.openWrite(upload, 5);
  writeSync(descriptor, content);
  closeSync(descriptor);
  return { exchange, writeId };
}

test('an archive is there when all of it has come, under its name', async () => {
  const { exchange, writeId } = await begin('bytes', upload);
  expect(await exchange.missing([upload])).toEqual([upload]);
  expect(promised.bytes).toBe(5);
  await exchange.keepWrite(writeId, 5);
  expect(promised.bytes).toBe(0);
  expect(await exchange.missing([upload])).toEqual([]);
  expect(readFileSync(join(dir, upload.teamId, upload.hash), 'utf8')).toBe('bytes');
  const { sizeBytes, descriptor } = await exchange.openRead(upload);
  closeSync(descriptor);
  expect(sizeBytes).toBe(5);
  await expect(exchange.keepWrite(writeId, 5)).rejects.toThrow('ended already');
});

test('an archive that came in part, or was dropped, leaves nothing', async () => {
  const { exchange, writeId } = await begin('by', upload);
  await expect(exchange.keepWrite(writeId, 5)).rejects.toThrow('2 bytes of 5');
  const other = await begin('bytes', upload);
  await other.exchange.dropWrite(other.writeId);
  expect(readdirSync(join(dir, upload.teamId))).toEqual([]);
  expect(promised.bytes).toBe(0);
  await expect(exchange.openRead(upload)).rejects.toThrow('not on this machine');
});

test('the part of an archive that has arrived counts only as space on the disk', async () => {
  const exchange = uploadExchange(dir, disk);
  const { writeId, descriptor } = await exchange.openWrite(upload, 1 << 20);
  writeSync(descriptor, Buffer.alloc(1 << 20, 1));
  closeSync(descriptor);
  while (promised.bytes > 0) await Bun.sleep(20);
  await exchange.keepWrite(writeId, 1 << 20);
  expect(promised.bytes).toBe(0);
});

test('a name that leads elsewhere is refused', async () => {
  for (const wrong of [
    { teamId: '..', hash: upload.hash },
    { teamId: 'team-1', hash: '../../etc/passwd' },
    { teamId: '', hash: upload.hash },
  ]) {
    await expect(begin('bytes', wrong)).rejects.toThrow('not the name of an archive');
    expect(await uploadExchange(dir, disk).missing([wrong])).toEqual([wrong]);
  }
});
