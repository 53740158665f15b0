import { expect, test } from 'bun:test';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createHurry } from './grace-periods.ts';

function scene(value: string | null) {
  const directory = mkdtempSync(join(tmpdir(), 'atoll-grace-'));
  const file = `${directory}.switch`;
  if (value !== null) writeFileSync(file, value);
  return {
    file,
    create: () => createHurry(join(directory, 'mark'), file),
    state: () => readFileSync(file, 'utf8').trim(),
    marks: () => readdirSync(directory).length,
    [Symbol.dispose]() {
      rmSync(directory, { recursive: true });
      rmSync(file, { force: true });
    },
  };
}

test('the switch is on as long as anybody hurries, and nothing is left of it', () => {
  using host = scene('0\n');
  const hurry = host.create();
  expect(host.state()).toBe('0');
  const first = hurry();
  const second = hurry();
  first[Symbol.dispose]();
  expect([host.state(), host.marks()]).toEqual(['1', 1]);
  second[Symbol.dispose]();
  expect([host.state(), host.marks()]).toEqual(['0', 0]);
});

test('a switch that a crash has left on is turned off; one that somebody else has turned on stays on', () => {
  using host = scene('0\n');
  host.create()();
  expect(host.state()).toBe('1');
  host.create();
  expect([host.state(), host.marks()]).toEqual(['0', 0]);
  const hurry = host.create();
  writeFileSync(host.file, '1\n');
  hurry()[Symbol.dispose]();
  expect([host.state(), host.marks()]).toEqual(['1', 0]);
});

test('a kernel without the switch is no reason to fail', () => {
  using host = scene(null);
  host.create()()[Symbol.dispose]();
});
