import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'bun:test';
import { keepAgent } from './copy.ts';

test('an agent that is kept has no bytes of its own, and stays when another one is built', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-agent-copy-'));
  try {
    const [built, agents] = [join(folder, 'agent'), join(folder, 'agents')];
    // As set-up does it: the former one is removed, and another one gets its name.
    const build = (version: string) => {
      rmSync(built, { recursive: true, force: true });
      mkdirSync(join(built, 'lib'), { recursive: true });
      for (const name of ['agent', 'lib/library']) writeFileSync(join(built, name), version, { mode: 0o755 });
    };
    build('one');
    const one = await keepAgent(built, agents);
    expect(await keepAgent(built, agents)).toBe(one);
    const inodes = (root: string) => ['agent', 'lib/library'].map(name => statSync(join(root, name)).ino);
    expect(inodes(one)).toEqual(inodes(built));
    build('the second');
    const two = await keepAgent(built, agents);
    expect(two).not.toBe(one);
    for (const name of ['agent', 'lib/library']) {
      expect(readFileSync(join(one, name), 'utf8')).toBe('one');
      expect(readFileSync(join(two, name), 'utf8')).toBe('the second');
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
