import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { closeOneEndedConnections } from './connections.ts';
import { lookThrough } from './images/image-file.ts';
import { encodeFields, messageIn, numberIn, numbersIn, type Field } from './images/protobuf.ts';

const directory = mkdtempSync(join(tmpdir(), 'atoll-images-'));
afterAll(() => rmSync(directory, { recursive: true }));

const loopback = [0x0100007f];
const outside = [0x08080808];
const listening = 10;
const established = 1;
const closeWait = 8;

const numbers = (number: number, values: number[]): Field[] =>
  values.map(value => ({ number, wire: 0, value: BigInt(value) }));

/** A `file_entry` with an `inet_sk_entry`, fields as in CRIU's images. */
function socket(options: {
  state: number;
  from: [number[], number];
  to?: [number[], number];
  protocol?: number;
}): Field[] {
  const [peer, peerPort] = options.to ?? [[0], 0];
  const entry = [
    ...numbers(1, [7]),
    ...numbers(5, [options.protocol ?? 6]),
    ...numbers(6, [options.state]),
    ...numbers(7, [options.from[1]]),
    ...numbers(8, [peerPort]),
    ...numbers(11, options.from[0]),
    ...numbers(12, peer),
  ];
  return [...numbers(1, [3]), { number: 4, wire: 2, value: encodeFields(entry) }];
}

function imageOf(files: Field[][]): string {
  const path = join(directory, 'files.img');
  const parts = files.flatMap(file => {
    const message = encodeFields(file);
    const length = Buffer.alloc(4);
    length.writeUInt32LE(message.length);
    return [length, message];
  });
  writeFileSync(path, Buffer.concat([Buffer.from('magic..!'), ...parts]));
  return path;
}

async function read(path: string): Promise<Field[][]> {
  const files: Field[][] = [];
  await lookThrough(path, file => void files.push(file));
  return files;
}

/** State, ports and shutdown of every socket of the image. */
const facts = async (path: string) =>
  (await read(path)).map(file => [6, 7, 8, 19].map(number => numberIn(messageIn(file, 4) ?? [], number)));

test('connections with both ends in the checkpoint stay, all others are closed', async () => {
  const path = imageOf([
    socket({ state: listening, from: [loopback, 80] }),
    socket({ state: established, from: [loopback, 5000], to: [loopback, 80] }),
    socket({ state: established, from: [loopback, 80], to: [loopback, 5000] }),
    socket({ state: established, from: [loopback, 80], to: [loopback, 5001] }),
    socket({ state: established, from: [loopback, 6000], to: [outside, 443] }),
    socket({ state: established, from: [loopback, 7000], to: [outside, 53], protocol: 17 }),
  ]);
  expect(await closeOneEndedConnections(path)).toBe(2);
  expect(await facts(path)).toEqual([
    [listening, 80, 0, 0],
    [established, 5000, 80, 0],
    [established, 80, 5000, 0],
    [7, 0, 0, 3],
    [7, 0, 0, 3],
    [established, 7000, 53, 0],
  ]);
});

test('an end in the other address family is found', async () => {
  const mapped = [0, 0, 0xffff0000, ...loopback];
  const path = imageOf([
    socket({ state: established, from: [loopback, 5000], to: [loopback, 80] }),
    socket({ state: established, from: [mapped, 80], to: [mapped, 5000] }),
  ]);
  expect(await closeOneEndedConnections(path)).toBe(0);
});

test('a half-closed connection is closed on both ends', async () => {
  const path = imageOf([
    socket({ state: established, from: [loopback, 5000], to: [loopback, 80] }),
    socket({ state: closeWait, from: [loopback, 80], to: [loopback, 5000] }),
  ]);
  expect(await closeOneEndedConnections(path)).toBe(2);
});

test('everything that is not a connection is kept byte for byte', async () => {
  const file: Field[] = [
    ...numbers(1, [1]),
    { number: 3, wire: 2, value: Buffer.from('a regular file') },
    { number: 9, wire: 5, value: Buffer.from('four') },
  ];
  const path = imageOf([file]);
  await closeOneEndedConnections(path);
  expect(await read(path)).toEqual([
    file.map(field => (field.wire === 0 ? field : { ...field, value: Buffer.from(field.value) })),
  ]);
  expect(numbersIn((await read(path))[0] ?? [], 1)).toEqual([1]);
});
