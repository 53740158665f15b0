import { expect, test } from 'bun:test';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parsePackages, readBaseDefinition } from './definition.ts';

const shipped = new URL('../../../../templates/base', import.meta.url).pathname;

test('comments and empty lines are no packages', () => {
  expect(parsePackages('# heading\n\ngit\n  curl  # downloads\n#wget\n')).toEqual(['git', 'curl']);
});

test('the shipped definition names what clients rely on', async () => {
  const { packages } = await readBaseDefinition(shipped);
  for (const name of ['git', 'sudo', 'procps', 'iproute2', 'curl', 'python3', 'python-is-python3', 'gh', 'build-essential']) {
    expect(packages).toContain(name);
  }
});

test('the digest changes with any file of the definition', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-definition-'));
  try {
    await cp(shipped, dir, { recursive: true });
    const { digest } = await readBaseDefinition(dir);
    expect(digest).toBe((await readBaseDefinition(shipped)).digest);
    await writeFile(join(dir, 'provision.sh'), '#!/bin/sh\n');
    expect((await readBaseDefinition(dir)).digest).not.toBe(digest);
  } finally {
    await rm(dir, { recursive: true });
  }
});
