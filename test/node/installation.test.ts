import { expect, test } from 'bun:test';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { claimInstallation } from '../../src/node/installation.ts';

const program = join(import.meta.dir, '../../src/node/installation.ts');

test('installations in different mount namespaces see each other, and never have the same number', async () => {
  const directories = Array.from({ length: 2 }, () => mkdtempSync(join(tmpdir(), 'atoll-claim-')));
  const [there = '', here = ''] = directories;
  const claim = `const { claimInstallation } = await import(${JSON.stringify(program)}); const claimed = claimInstallation(${JSON.stringify(there)}); console.log(claimed.number); await new Response(Bun.stdin.stream()).text(); claimed.release(); claimed.unlock();`;
  const child = Bun.spawn(['unshare', '--mount', '--propagation', 'private', process.execPath, '-e', claim], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  });
  try {
    const { value } = await child.stdout.getReader().read();
    const number = Number(new TextDecoder().decode(value));
    expect(readFileSync(`/run/atoll/${number}/owner`, 'utf8')).toBe(there);
    const own = claimInstallation(here);
    expect(own.number).not.toBe(number);
    own.release();
    own.unlock();
    await child.stdin.end();
    expect(await child.exited).toBe(0);
    expect(existsSync(`/run/atoll/${number}`) && readFileSync(`/run/atoll/${number}/owner`, 'utf8') === there).toBe(
      false,
    );
  } finally {
    child.kill();
    for (const directory of directories) rmSync(directory, { recursive: true, force: true });
  }
});

test('a number whose directory is not seen here, as of a container that shares /run/atoll, is taken last', () => {
  const directories = Array.from({ length: 2 }, () => mkdtempSync(join(tmpdir(), 'atoll-claim-')));
  const [elsewhere = '', here = ''] = directories;
  const first = claimInstallation(elsewhere);
  const away = `${elsewhere}-away`;
  try {
    renameSync(elsewhere, away);
    const own = claimInstallation(here);
    expect(own.number).not.toBe(first.number);
    own.release();
    own.unlock();
    expect(readFileSync(join(first.runDir, 'owner'), 'utf8')).toBe(elsewhere);
  } finally {
    first.release();
    first.unlock();
    for (const directory of [...directories, away]) rmSync(directory, { recursive: true, force: true });
  }
});
