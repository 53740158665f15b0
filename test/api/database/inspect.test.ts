import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from '../../../src/api/database/database.ts';
import { inspectStore } from '../../../src/api/database/inspect.ts';

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'atoll-inspect-'))));
afterEach(() => rmSync(folder, { recursive: true }));

// The folder belongs to the api, which may be compromised, and the supervisor, which watches all parts, looks into it.
// Blocking cases are tested in a separate process, so that a wrong answer does not make a test that never ends.
test('what takes the place of a database or of a file beside it, and is none, makes nobody wait', async () => {
  const path = join(folder, 'atoll.sqlite');
  const program = `import { inspectStore } from ${JSON.stringify(join(import.meta.dir, '../../../src/api/database/inspect.ts'))};
    await inspectStore({ kind: 'sqlite', path: ${JSON.stringify(path)} }).catch(error => console.log(error.message));`;
  const said = () =>
    Bun.spawnSync([process.execPath, '-e', program], { cwd: '/', timeout: 20_000 }).stdout.toString().trim();
  const pipe = (at: string) => expect(Bun.spawnSync(['mkfifo', at]).exitCode).toBe(0);
  pipe(path);
  expect(said()).toContain('it is no file');
  rmSync(path);
  const store = await openStore({ kind: 'sqlite', path });
  await store[Symbol.asyncDispose]();
  expect(said()).toBe('');
  for (const suffix of ['-journal', '-wal', '-shm']) {
    rmSync(`${path}${suffix}`, { force: true });
    pipe(`${path}${suffix}`);
    expect(said()).toContain('it is no file');
    rmSync(`${path}${suffix}`);
  }
});

test('a database that is missing, or was lost to a file system, is empty; one that is none is damaged', async () => {
  const path = join(folder, 'atoll.sqlite');
  const location = { kind: 'sqlite', path } as const;
  expect(await inspectStore(location)).toEqual({ kind: 'empty' });
  writeFileSync(path, '');
  expect(await inspectStore(location)).toEqual({ kind: 'empty' });
  writeFileSync(path, 'what is no database');
  await expect(inspectStore(location)).rejects.toThrow('it is no SQLite database');
  renameSync(path, `${path}.away`);
  await (await openStore(location))[Symbol.asyncDispose]();
  expect(await inspectStore(location)).toMatchObject({ kind: 'state', installation: null });
});
