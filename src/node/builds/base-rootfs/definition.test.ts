import { expect, test } from 'bun:test';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { digestOfFolder, parsePackages, readBaseRootfsDefinition } from './definition.ts';

const shipped = new URL('../../../../templates/base', import.meta.url).pathname;
const definitionOf = (dir: string) => ({ packagesFile: join(dir, 'packages.txt'), npmDir: join(dir, 'npm') });

test('comments and empty lines are no packages', () => {
  expect(parsePackages('# heading\n\ngit\n  curl  # downloads\n#wget\n')).toEqual(['git', 'curl']);
});

test('the shipped definition names what clients rely on', async () => {
  const { packages } = await readBaseRootfsDefinition(definitionOf(shipped));
  for (const name of [
    'git',
    'sudo',
    'procps',
    'iproute2',
    'curl',
    'python3',
    'python-is-python3',
    'gh',
    'build-essential',
  ]) {
    expect(packages).toContain(name);
  }
});

test('the digests change with what they are about, and with nothing else', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-definition-'));
  try {
    await cp(shipped, dir, { recursive: true });
    const [{ digest }, folder] = [await readBaseRootfsDefinition(definitionOf(dir)), await digestOfFolder(dir)];
    expect(digest).toBe((await readBaseRootfsDefinition(definitionOf(shipped))).digest);
    await writeFile(join(dir, 'template.json'), '{}');
    expect((await readBaseRootfsDefinition(definitionOf(dir))).digest).toBe(digest);
    const changed = await digestOfFolder(dir);
    expect(changed).not.toBe(folder);
    await writeFile(join(dir, 'packages.txt'), 'git\n');
    expect((await readBaseRootfsDefinition(definitionOf(dir))).digest).not.toBe(digest);
    const before = await digestOfFolder(dir);
    await mkdir(join(dir, '__pycache__'));
    await writeFile(join(dir, '__pycache__/x.pyc'), 'x');
    expect(await digestOfFolder(dir)).toBe(before);
  } finally {
    await rm(dir, { recursive: true });
  }
});
