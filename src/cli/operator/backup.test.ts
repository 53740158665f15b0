import { expect, test } from 'bun:test';
import { resolve } from 'node:path';
import { runCommandLine } from '../run.ts';
import { backupCommands } from './backup.ts';

const report = { bytes: 7, layers: 2, sandboxes: ['sb_1'], leftOut: [], restlessVolumes: [] };
const restored = { dataDir: '/data', createdAt: '2026-01-01T00:00:00.000Z', sandboxes: ['sb_1', 'sb_2'] };

/** Runs a command; `found` overrides what a backup or its file contains. */
async function run(argv: string[], found: Partial<typeof report & typeof restored> = {}) {
  const asked: unknown[] = [];
  let [out, err] = ['', ''];
  const commands = backupCommands({
    write: async (file, { sandboxes }) => (asked.push([file, { sandboxes }]), { file, ...report, ...found }),
    restore: async file => (asked.push(file), { ...restored, ...found }),
  });
  const terminal = {
    out: (text: string) => void (out += text),
    err: (text: string) => void (err += text),
    isInteractive: false,
  };
  const code = await runCommandLine(argv, commands, terminal as Parameters<typeof runCommandLine>[2]);
  return { code, out, err, asked };
}

test('a backup says where it is, what it holds, and to keep it', async () => {
  const { code, out, err, asked } = await run(['backup', 'x.tar']);
  expect(asked).toEqual([[resolve('x.tar'), { sandboxes: false }]]);
  expect(out).toBe(
    `${resolve('x.tar')}: 7 bytes, 2 layers. It holds the keys of the installation: ` +
      `keep it where nobody else reads it.\n`,
  );
  expect([code, err]).toEqual([0, '']);
});

test('a backup with sandboxes counts them, and says which are left out and which volumes did not rest', async () => {
  const leftOut = [{ sandboxId: 'sb_9', reason: 'it runs' }] as never;
  const { out, err, asked } = await run(['backup', '/x', '--sandboxes'], { leftOut, restlessVolumes: ['v1'] as never });
  expect(asked).toEqual([['/x', { sandboxes: true }]]);
  expect(out).toStartWith('/x: 7 bytes, 2 layers, 1 paused sandbox. ');
  expect(err).toContain('Sandbox sb_9 is left out: it runs.\n');
  expect(err).toContain('Volume v1 was being written to all the time');
});

test('a program is told the same as JSON, with the names of the interface', async () => {
  const leftOut = [{ sandboxId: 'sb_9', reason: 'it runs' }] as never;
  const { out } = await run(['backup', '/x', '--json'], { leftOut });
  expect(JSON.parse(out)).toEqual({ file: '/x', ...report, leftOut: [{ sandboxID: 'sb_9', reason: 'it runs' }] });
});

test('what was restored says how old it is and how to go on', async () => {
  const { code, out, asked } = await run(['restore', 'x.tar']);
  expect(asked).toEqual([resolve('x.tar')]);
  expect(out).toBe(
    '/data is as it was at 2026-01-01T00:00:00.000Z, with 2 paused sandboxes. Start it with `atoll up`.\n',
  );
  expect(code).toBe(0);
  expect((await run(['restore', '/x'], { sandboxes: [] })).out).not.toContain('sandboxes');
  expect(JSON.parse((await run(['restore', '/x', '--json'])).out)).toEqual(restored);
});

for (const name of ['backup', 'restore'])
  test(`${name} without a file says how it is called, and does nothing`, async () => {
    const { code, err, asked } = await run([name]);
    expect(err).toContain(`Usage: atoll ${name} FILE`);
    expect([code, asked]).toEqual([2, []]);
  });
