import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'bun:test';
import { forgetOtherAgents, keepAgent } from './copy.ts';

test('an agent that is kept has no bytes of its own, and stays when another one is built', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-agent-copy-'));
  try {
    const [built, agents] = [join(folder, 'agent'), join(folder, 'agents')];
    // Like set-up, which removes the old one and gives its name to a new one.
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

test('copies that nobody uses go, but for the two latest', () => {
  const agents = mkdtempSync(join(tmpdir(), 'atoll-agent-copies-'));
  try {
    for (const [index, name] of ['first', 'used', 'second', 'third', 'fourth', 'copying'].entries()) {
      mkdirSync(join(agents, name));
      utimesSync(join(agents, name), index, index);
    }
    forgetOtherAgents(agents, [join(agents, 'used')]);
    expect(readdirSync(agents).toSorted()).toEqual(['fourth', 'third', 'used']);
  } finally {
    rmSync(agents, { recursive: true });
  }
});
