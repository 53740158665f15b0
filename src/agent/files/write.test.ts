import { afterEach, beforeEach, expect, test } from 'bun:test';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openNative } from '../native.ts';
import { compose } from './compose.ts';
import { upload } from './upload.ts';

type Agent = Parameters<typeof upload>[0];

let folder = '';
let logged: unknown[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'atoll-agent-write-'));
  logged = [];
});
afterEach(() => rmSync(folder, { recursive: true }));

const agentOf = (accessToken: string | null = null) =>
  ({
    native: openNative(),
    journal: { add: (...[, , , fields]: unknown[]) => void logged.push(fields) },
    settings: () => ({ accessToken, defaultUser: 'root', defaultWorkdir: folder }),
  }) as unknown as Agent;
const at = (name: string) => join(folder, name);
const read = (name: string) => readFileSync(at(name), 'utf8');
const error = (code: string, message: string) =>
  expect.objectContaining({ code, message: expect.stringContaining(message) }) as unknown;

const bytes = 'application/octet-stream';
type Body = string | Uint8Array<ArrayBuffer> | FormData | ReadableStream<Uint8Array>;

/** Uploads a body; `query` is that of `/files`. */
async function send(query: Record<string, string>, body: Body | undefined, headers: Record<string, string> = {}) {
  const url = new URL(`http://agent/files?${new URLSearchParams(query)}`);
  const request = new Request(url.href, { method: 'POST', headers, body: body ?? null } as RequestInit);
  return (await upload(agentOf(), request, url)).json();
}
const sendFile = (path: string, body: Body | undefined, headers: Record<string, string> = {}) =>
  send({ path: at(path) }, body, { 'content-type': bytes, ...headers });

function form(...files: [field: string, content: string, filename: string][]): FormData {
  const data = new FormData();
  for (const [field, content, filename] of files) data.append(field, new Blob([content]), filename);
  return data;
}

test('a body becomes a file, with the directories above it', async () => {
  expect(await sendFile('a/b', 'content')).toEqual([{ path: at('a/b'), name: 'b', type: 'file' }]);
  expect(read('a/b')).toBe('content');
  expect(logged).toEqual([{ event: 'write', path: at('a/b'), bytes: '7' }]);
  await sendFile('empty', undefined, { 'content-type': 'Application/Octet-Stream ; x=y' });
  expect(read('empty')).toBe('');
});

test('a file that was there is written anew, and keeps its inode and its mode', async () => {
  writeFileSync(at('file'), 'much longer than what comes');
  chmodSync(at('file'), 0o640);
  const before = lstatSync(at('file'));
  symlinkSync('file', at('link'));
  await sendFile('link', 'short');
  const { ino, mode } = lstatSync(at('file'));
  expect([read('file'), ino, mode, lstatSync(at('link')).isSymbolicLink()]).toEqual([
    'short',
    before.ino,
    before.mode,
    true,
  ]);
});

test('a written file belongs to the named user', async () => {
  writeFileSync(at('file'), '');
  await send({ path: at('file'), username: '1234:1235' }, 'x', { 'content-type': bytes });
  await send({ path: at('new/file'), username: '1234:1235' }, 'x', { 'content-type': bytes });
  for (const name of ['file', 'new/file', 'new']) expect(lstatSync(at(name))).toMatchObject({ uid: 1234, gid: 1235 });
  await send({ path: at('file'), username: '1234:1236' }, 'x', { 'content-type': bytes });
  expect(lstatSync(at('file'))).toMatchObject({ uid: 1234, gid: 1236 });
  await expect(send({ path: at('x'), username: 'nobody here' }, 'x', { 'content-type': bytes })).rejects.toEqual(
    error('unauthenticated', 'invalid username'),
  );
});

test('metadata of the headers stay with the file, in place of those that it had', async () => {
  const written = await sendFile('file', 'x', { 'x-metadata-kind': 'first' });
  expect(written).toEqual([{ path: at('file'), name: 'file', type: 'file', metadata: { kind: 'first' } }]);
  expect(await sendFile('file', 'y')).toEqual([{ path: at('file'), name: 'file', type: 'file' }]);
});

test('a compressed body is stored decompressed', async () => {
  const packed = Bun.gzipSync('content');
  for (const coding of ['gzip', 'X-GZIP ']) {
    await sendFile(`of ${coding.trim()}`, packed, { 'content-encoding': coding });
    expect(read(`of ${coding.trim()}`)).toBe('content');
  }
  for (const coding of ['identity', ' ']) await sendFile('plain', 'plain', { 'content-encoding': coding });
  expect(read('plain')).toBe('plain');
  await expect(sendFile('file', 'x', { 'content-encoding': 'br' })).rejects.toEqual(
    error('invalid', "content encoding 'br' can't be decoded"),
  );
  expect(existsSync(at('file'))).toBeFalse();
});

test('a path that can’t be a file is refused with the reason', async () => {
  mkdirSync(at('directory'));
  Bun.spawnSync(['mkfifo', at('pipe')]);
  writeFileSync(at('file'), 'kept');
  symlinkSync('loop', at('loop'));
  for (const [path, message] of [
    ['directory', 'is a directory'],
    ['pipe', 'is a pipe, socket or device that nobody has opened'],
    ['file/x', 'goes through something that is not a directory'],
    ['loop', 'goes through too many links'],
  ] as const)
    await expect(sendFile(path, 'x')).rejects.toEqual(error('invalid', message));
  for (const [query, type, message] of [
    [{}, bytes, 'the query must name a path'],
    [{ path: '/dev/null' }, bytes, 'is not a regular file'],
    [{ path: '/proc/self/environ' }, bytes, 'of the agent'],
    [{ path: at('file') }, 'text/plain', "content type 'text/plain' can't be uploaded"],
    [{ path: at('file') }, 'multipart/form-data', 'boundary'],
  ] as [Record<string, string>, string, string][])
    await expect(send(query, 'x', { 'content-type': type })).rejects.toEqual(error('invalid', message));
  await expect(send({ path: '/proc/sys/kernel/ostype' }, 'x', { 'content-type': bytes })).rejects.toEqual(
    error('forbidden', 'forbids it'),
  );
  expect([read('file'), logged]).toEqual(['kept', []]);
});

test('a client without the right to write writes nothing', async () => {
  const url = new URL(`http://agent/files?path=${at('file')}`);
  const request = new Request(url.href, { method: 'POST', headers: { 'content-type': bytes }, body: 'x' });
  await expect(upload(agentOf('secret'), request, url)).rejects.toMatchObject({ code: 'unauthenticated' });
  expect(existsSync(at('file'))).toBeFalse();
});

test('an upload that breaks off leaves what came so far, and no file open', async () => {
  const open = () => readdirSync('/proc/self/fd').length;
  const breaking = () => {
    let pulls = 0;
    return new ReadableStream<Uint8Array>({
      pull(controller) {
        if (pulls++ === 0) controller.enqueue(Buffer.from('the first part'));
        else controller.error(new Error('the client is gone'));
      },
    });
  };
  await expect(sendFile('warm', breaking())).rejects.toThrow('the client is gone');
  const before = open();
  for (let round = 0; round < 5; round++)
    await expect(sendFile('file', breaking())).rejects.toThrow('the client is gone');
  await expect(sendFile('directory/../warm/x', 'x')).rejects.toThrow();
  for (let round = 0; round < 5; round++) await sendFile('whole', 'x');
  for (let round = 0; round < 5; round++)
    await expect(send({ path: '/dev/null' }, 'x', { 'content-type': bytes })).rejects.toThrow();
  expect([read('file'), open()]).toEqual(['the first part', before]);
  expect(logged).toHaveLength(5);
});

test('a form becomes its files; other fields are passed over', async () => {
  const written = await send({}, form(['file', 'one', at('a')], ['note', 'x', 'b'], ['file', 'two', at('sub/c')]));
  expect(written).toEqual([
    { path: at('a'), name: 'a', type: 'file' },
    { path: at('sub/c'), name: 'c', type: 'file' },
  ]);
  expect([read('a'), read('sub/c'), readdirSync(folder).sort()]).toEqual(['one', 'two', ['a', 'sub']]);
  // The path in the query takes precedence over the name of the part.
  expect(await send({ path: at('named') }, form(['file', 'three', 'elsewhere']))).toMatchObject([
    { path: at('named') },
  ]);
  expect(read('named')).toBe('three');
});

test('two files of a form can’t have one path, and each needs one', async () => {
  await expect(send({}, form(['file', 'one', at('a')], ['file', 'two', at('a')]))).rejects.toEqual(
    error('invalid', `two files of the request have the path '${at('a')}'`),
  );
  expect(read('a')).toBe('one');
  const nameless = '--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nx\r\n--b--\r\n';
  await expect(send({}, nameless, { 'content-type': 'multipart/form-data; boundary=b' })).rejects.toEqual(
    error('invalid', 'a file needs a path'),
  );
});

/** Composes; paths are below the folder. */
async function composeOf(sources: string[], destination: string, more: object = {}) {
  const body = { sourcePaths: sources.map(at), destination: destination && at(destination), ...more };
  const request = new Request('http://agent/files/compose', { method: 'POST', body: JSON.stringify(body) });
  return (await compose(agentOf(), request)).json();
}

test('one file is made of several, in order, and they are gone', async () => {
  const large = 'x'.repeat((1 << 20) + 5);
  writeFileSync(at('one'), large);
  writeFileSync(at('two'), 'two');
  const composed = await composeOf(['one', 'two', 'one'], 'new/whole', { username: '1234:1235' });
  expect(composed).toEqual({ path: at('new/whole'), name: 'whole', type: 'file' });
  expect(read('new/whole') === `${large}two${large}`).toBeTrue();
  expect(lstatSync(at('new/whole'))).toMatchObject({ uid: 1234, gid: 1235 });
  expect([readdirSync(folder), readdirSync(at('new'))]).toEqual([['new'], ['whole']]);
  expect(logged).toEqual([{ event: 'write', path: at('new/whole'), sources: '3' }]);
});

test('a composed file replaces the old one in one step', async () => {
  writeFileSync(at('part'), 'new');
  writeFileSync(at('whole'), 'old');
  const before = lstatSync(at('whole')).ino;
  const open = readdirSync('/proc/self/fd').length;
  await composeOf(['part'], 'whole');
  expect([read('whole'), lstatSync(at('whole')).ino === before]).toEqual(['new', false]);
  expect(readdirSync('/proc/self/fd')).toHaveLength(open);
});

test('a compose that can’t be done changes nothing', async () => {
  mkdirSync(at('directory'));
  writeFileSync(at('part'), 'part');
  writeFileSync(at('whole'), 'whole');
  symlinkSync('whole', at('link'));
  for (const [sources, destination, code, message] of [
    [[], 'whole', 'invalid', 'source_paths must name at least one file'],
    [['part'], '', 'invalid', 'destination must be a path'],
    [['part'], 'directory', 'invalid', 'is a directory'],
    [['part', 'gone'], 'new', 'not_found', `path '${at('gone')}' not found`],
    [['part', 'directory'], 'new', 'invalid', 'is not a regular file'],
    [['part', 'link'], 'new', 'invalid', 'is not a regular file'],
    [['part', 'whole'], 'whole', 'invalid', 'is both a source and the destination'],
    [['part', 'whole'], 'link', 'invalid', 'is both a source and the destination'],
    [['part'], 'whole/x', 'invalid', 'goes through something that is not a directory'],
  ] as [string[], string, string, string][])
    await expect(composeOf(sources, destination)).rejects.toEqual(error(code, message));
  expect(readdirSync(folder).sort()).toEqual(['directory', 'link', 'part', 'whole']);
  expect([read('part'), read('whole'), logged]).toEqual(['part', 'whole', []]);
});

test('a compose that fails on its way leaves no part of it', async () => {
  writeFileSync(at('part'), 'part');
  const body = { sourcePaths: [at('part'), '/proc/self/environ'], destination: at('whole') };
  const request = new Request('http://agent/files/compose', { method: 'POST', body: JSON.stringify(body) });
  await expect(compose(agentOf(), request)).rejects.toEqual(error('invalid', 'of the agent'));
  expect(readdirSync(folder)).toEqual(['part']);
});
