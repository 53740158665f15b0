import { expect, test } from 'bun:test';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  exitsMax,
  exitsOffset,
  processesMax,
  processRecordBytesMax,
  settingsBytesMax,
  settingsOffsets,
  tokenOffset,
} from './layout.ts';
import { openStateFile } from './state-file.ts';

/** A state file as init leaves it, and all agents that open it. */
function stateFile(init: { token?: string; ends?: [pid: number, status: number][] } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-state-'));
  const path = join(folder, 'state');
  const fd = openSync(path, 'w+');
  writeSync(fd, Buffer.from(`${init.token ?? ''}\n`), 0, undefined, tokenOffset);
  for (const [index, end] of (init.ends ?? []).entries()) {
    writeSync(fd, new Int32Array(end), 0, 8, exitsOffset + 4 + (index % exitsMax) * 8);
    writeSync(fd, new Uint32Array([index + 1]), 0, 4, exitsOffset);
  }
  return {
    path,
    agent: () => openStateFile(fd),
    [Symbol.dispose]() {
      closeSync(fd);
      rmSync(folder, { recursive: true });
    },
  };
}

/** Saves settings in a process that can't write beyond a certain offset of the file. */
async function saveWithin(path: string, settings: unknown, bytes: number): Promise<string> {
  const program = `
    import { openSync } from 'node:fs';
    import { openStateFile } from '${import.meta.dir}/state-file.ts';
    openStateFile(openSync('${path}', 'r+')).saveSettings(${JSON.stringify(settings)});
  `;
  const limited = `trap '' XFSZ; ulimit -f ${bytes / 512}; exec "$@"`;
  const child = Bun.spawn(['/bin/sh', '-c', limited, 'sh', process.execPath, '-e', program], { stderr: 'pipe' });
  const said = await child.stderr.text();
  return (await child.exited) === 0 ? 'saved' : said;
}

test('settings are those that were saved last, also for the next agent', () => {
  using file = stateFile();
  const agent = file.agent();
  expect(agent.readSettings()).toBeUndefined();
  // Shorter and longer than the previous ones, in both halves.
  for (const settings of [{ a: 'é' }, { a: 'x'.repeat(100_000) }, { a: '' }, null, { a: 1, b: [2] }]) {
    agent.saveSettings(settings);
    expect(agent.readSettings()).toEqual(settings);
    expect(file.agent().readSettings()).toEqual(settings);
  }
});

test('settings that could be written in part alone leave the earlier ones', async () => {
  using file = stateFile();
  const agent = file.agent();
  const more = { n: 'more', rest: 'x'.repeat(9000) };
  for (const [n, half] of settingsOffsets.entries()) {
    agent.saveSettings({ n });
    // The head can be written, but nothing of the other half, or only its beginning.
    expect(await saveWithin(file.path, more, 1 << 19)).toContain('EFBIG');
    expect(await saveWithin(file.path, more, half + 4096)).toContain('took 4096 of 9022 bytes');
    expect(file.agent().readSettings()).toEqual({ n });
  }
  expect(await saveWithin(file.path, { n: 3 }, 1 << 25)).toBe('saved');
  expect(agent.readSettings()).toEqual({ n: 3 });
});

test('settings may take half of the room, and longer ones change nothing', () => {
  using file = stateFile();
  const agent = file.agent();
  const longest = 'x'.repeat(settingsBytesMax - 2);
  // Each half is used in turn.
  for (const n of [1, 2]) {
    const slot = agent.addProcess({ n });
    agent.saveSettings(longest);
    expect(agent.readSettings() === longest).toBeTrue();
    expect(() => agent.saveSettings(`${longest}x`)).toThrow(`${settingsBytesMax + 1} bytes`);
    expect(agent.readSettings() === longest).toBeTrue();
    expect(file.agent().readProcesses()).toContainEqual({ slot, record: { n } });
  }
});

test('processes that were not removed are found by the next agent, which goes on with the slots that are free', () => {
  using file = stateFile();
  const first = file.agent();
  const slots = ['a', 'b', 'c', 'd'].map(name => first.addProcess({ name }));
  expect(slots).toEqual([0, 1, 2, 3]);
  first.removeProcess(1);
  first.removeProcess(-1);
  expect(first.addProcess({ name: 'e' })).toBe(1);
  first.removeProcess(0);
  first.removeProcess(2);
  const second = file.agent();
  const kept = [
    { slot: 1, record: { name: 'e' } },
    { slot: 3, record: { name: 'd' } },
  ];
  for (const _ of [1, 2]) expect(second.readProcesses()).toEqual(kept);
  // Low ones first.
  expect(['f', 'g', 'h'].map(name => second.addProcess({ name }))).toEqual([0, 2, 4]);
  expect(file.agent().readProcesses()).toEqual([
    { slot: 0, record: { name: 'f' } },
    { slot: 1, record: { name: 'e' } },
    { slot: 2, record: { name: 'g' } },
    { slot: 3, record: { name: 'd' } },
    { slot: 4, record: { name: 'h' } },
  ]);
});

test('a record that is too long, and one more than there is room for, has no slot', () => {
  using file = stateFile();
  const agent = file.agent();
  const longest = 'x'.repeat(processRecordBytesMax - 4 - 2);
  expect(agent.addProcess(`${longest}x`)).toBe(-1);
  expect(agent.addProcess(longest)).toBe(0);
  expect(agent.addProcess(longest)).toBe(1);
  expect(file.agent().readProcesses()).toEqual([
    { slot: 0, record: longest },
    { slot: 1, record: longest },
  ]);
  for (let slot = 2; slot < processesMax; slot++) expect(agent.addProcess(slot)).toBe(slot);
  expect(agent.addProcess('one more')).toBe(-1);
  const next = file.agent();
  expect(next.readProcesses()).toHaveLength(processesMax);
  expect(next.addProcess('one more')).toBe(-1);
  next.removeProcess(7);
  expect(next.addProcess('one more')).toBe(7);
});

test('the ends of orphans are the newest that fit, oldest first', () => {
  using none = stateFile();
  expect(none.agent().orphanEnds()).toEqual([]);
  const ends = Array.from({ length: exitsMax + 3 }, (_, n): [number, number] => [1000 + n, n % 2 === 0 ? n << 8 : -n]);
  for (const count of [2, exitsMax, exitsMax + 3]) {
    using file = stateFile({ ends: ends.slice(0, count) });
    expect(file.agent().orphanEnds()).toEqual(
      ends.slice(Math.max(0, count - exitsMax), count).map(([pid, status]) => ({ pid, status })),
    );
  }
});

test('a token that was replaced is gone, and the next agent has the new one', () => {
  using file = stateFile({ token: 'before, and longer' });
  const agent = file.agent();
  agent.saveSettings({ a: 1 });
  agent.replaceControlToken('another');
  expect([agent.controlToken, file.agent().controlToken]).toEqual(['another', 'another']);
  expect([file.agent().readSettings(), file.agent().orphanEnds()]).toEqual([{ a: 1 }, []]);
});

test('the token is the first line', () => {
  for (const token of ['', 'abc', 'x'.repeat(255)]) {
    using file = stateFile({ token });
    expect(file.agent().controlToken).toBe(token);
  }
});
