import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommandLine } from '../run.ts';
import { copyCommand } from './copy.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'atoll-copy-'));
  writeFileSync(join(folder, 'a.txt'), 'of this machine');
  mkdirSync(join(folder, 'sub'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Copies, on a platform with one sandbox that has `/srv/b.txt`. */
async function copy(...args: string[]) {
  let connects = 0;
  const files: [method: string, path: string | null, content: string][] = [];
  await using server = Bun.serve({
    port: 0,
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      if (pathname.endsWith('/connect') && ++connects)
        return Response.json({ sandboxID: 'i1', envdVersion: '0.6.2', templateID: 't' });
      const path = searchParams.get('path');
      const content = request.method === 'POST' ? await uploaded(request) : '';
      files.push([request.method, path, content]);
      if (request.method === 'POST')
        return Response.json([{ name: 'b.txt', type: 'file', path: `/home/user/${path}` }]);
      if (path === '/srv/b.txt') return new Response('of the sandbox');
      return Response.json({ code: 404, message: `${path} is not there` }, { status: 404 });
    },
  });
  const connection = { url: `http://127.0.0.1:${server.port}`, apiKey: `e2b_${'0'.repeat(40)}`, domain: 'localhost' };
  let [out, err] = ['', ''];
  const code = await runCommandLine(['sandbox', 'cp', ...args], [copyCommand(() => connection)], {
    out: text => void (out += String(text)),
    err: text => void (err += text),
    isInteractive: false,
  });
  return { code, out, err, files, connects };
}

/** The content of an uploaded file, sent as a form or directly. */
async function uploaded(request: Request): Promise<string> {
  if (!request.headers.get('content-type')?.startsWith('multipart/')) return request.text();
  const file = [...(await request.formData()).values()][0];
  return file instanceof Blob ? file.text() : String(file);
}

test('a file goes into a sandbox, under its own name where a directory is named or nothing', async () => {
  const source = join(folder, 'a.txt');
  for (const [to, path] of [
    ['i1:/srv/b.txt', '/srv/b.txt'],
    ['i1:/srv/', '/srv/a.txt'],
    ['i1:', 'a.txt'],
  ] as const) {
    const { code, out, err, files } = await copy(source, to);
    expect({ to, code, out, err, files }).toEqual({
      to,
      code: 0,
      out: '',
      err: '',
      files: [['POST', path, 'of this machine']],
    });
  }
});

test('a file comes out of a sandbox, under its own name where a directory is named', async () => {
  for (const [to, file] of [
    [join(folder, 'c.txt'), 'c.txt'],
    [join(folder, 'sub'), 'sub/b.txt'],
    [`${join(folder, 'sub')}/`, 'sub/b.txt'],
  ] as const) {
    const { code, files } = await copy('i1:/srv/b.txt', to);
    expect([code, files]).toEqual([0, [['GET', '/srv/b.txt', '']]]);
    expect(readFileSync(join(folder, file), 'utf8')).toBe('of the sandbox');
    rmSync(join(folder, file));
  }
});

test('a directory that is not there is none, whatever the file would be called', async () => {
  const { code, err } = await copy('i1:/srv/b.txt', `${join(folder, 'none')}/`);
  expect([code, err]).toEqual([1, expect.stringContaining(join(folder, 'none/b.txt'))]);
  expect(existsSync(join(folder, 'none'))).toBe(false);
});

test('a program is told which file was written', async () => {
  expect(JSON.parse((await copy('--json', join(folder, 'a.txt'), 'i1:b.txt')).out)).toEqual({
    name: 'b.txt',
    type: 'file',
    path: '/home/user/b.txt',
  });
  const there = join(folder, 'c.txt');
  expect(JSON.parse((await copy('--json', 'i1:/srv/b.txt', there)).out)).toEqual({
    name: 'c.txt',
    type: 'file',
    path: there,
  });
});

test('exactly one of both is in a sandbox', async () => {
  for (const args of [
    [join(folder, 'a.txt'), join(folder, 'b.txt')],
    ['i1:/srv/b.txt', 'i2:/srv/b.txt'],
    // A slash before its colon makes it a path on this machine.
    [join(folder, 'a.txt'), './i1:b'],
  ]) {
    const { code, err, files } = await copy(...args);
    expect([code, files]).toEqual([2, []]);
    expect(err).toContain('Exactly one of both must be in a sandbox');
  }
});

test('an unreadable file is named, resumes no sandbox, and replaces nothing', async () => {
  for (const [source, says] of [
    ['sub', 'is a directory; pack it'],
    ['none', "can't be read"],
  ] as const) {
    const { code, err, connects } = await copy(join(folder, source), 'i1:x');
    expect([code, connects]).toEqual([1, 0]);
    expect(err).toContain(`${join(folder, source)} ${says}`);
  }
  const { code, err } = await copy('i1:/srv/none', join(folder, 'c.txt'));
  expect(code).toBe(1);
  expect(err).toContain('/srv/none is not there');
  expect(existsSync(join(folder, 'c.txt'))).toBe(false);
});
