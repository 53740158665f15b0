import { mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { agentDigest, readAgents } from './agents.ts';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'atoll-agents-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const copies = () => join(folder, 'agents');
const cache = () => join(folder, 'digests');

/** Makes a copy of an agent with this text in it. */
function copy(name: string, text: string, time = 1_000): string {
  const path = join(copies(), name, 'lib', 'a');
  mkdirSync(join(copies(), name, 'lib'), { recursive: true });
  writeFileSync(path, text);
  utimesSync(path, time, time);
  return join(copies(), name);
}

test('two copies of an agent are one agent, whenever they were made; another content is another', async () => {
  const first = await agentDigest(copy('one', 'agent', 1_000));
  expect(await agentDigest(copy('two', 'agent', 2_000))).toBe(first);
  expect(await agentDigest(copy('three', 'agenT', 1_000))).not.toBe(first);
});

test('a copy is found by its digest, and a digest by its copy, wherever that was', async () => {
  const [present, earlier] = [copy('present', 'new'), copy('earlier', 'old')];
  const agents = await readAgents(copies(), present, cache());
  const [own, other] = [await agentDigest(present), await agentDigest(earlier)];
  expect(agents).toMatchObject({ present: own, earlier: [other] });
  expect(['/elsewhere/present', earlier].map(agents.digestOf)).toEqual([own, other]);
  expect([own, other].map(agents.require)).toEqual([present, earlier]);
  expect(() => agents.digestOf('/agents/gone')).toThrow(expect.objectContaining({ code: 'precondition' }));
  expect(() => agents.require('f00')).toThrow(expect.objectContaining({ code: 'precondition' }));
});

test('if two copies have the same content, the current one is taken, and there is no earlier one', async () => {
  copy('again', 'agent');
  const agents = await readAgents(copies(), copy('present', 'agent'), cache());
  expect(agents.earlier).toEqual([]);
  expect(agents.require(agents.present)).toBe(join(copies(), 'present'));
});

test('the digest of a copy that is known is not computed again; of one that is gone it is forgotten', async () => {
  const present = copy('present', 'agent');
  copy('earlier', 'old');
  const first = await readAgents(copies(), present, cache());
  copy('present', 'changed in place, which nobody does');
  expect(await readAgents(copies(), present, cache())).toMatchObject({ present: first.present });
  rmSync(join(copies(), 'earlier'), { recursive: true });
  const third = await readAgents(copies(), present, cache());
  expect(third.earlier).toEqual([]);
  expect(readFileSync(cache(), 'utf8')).toBe(`present ${first.present}\n`);
  // The format from when only one copy was known.
  writeFileSync(cache(), `${present} ${first.present}`);
  expect((await readAgents(copies(), present, cache())).present).toBe(first.present);
});
