import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCampaign } from './engine/campaign.ts';
import { keep, readKept } from './engine/kept.ts';
import { cutIntoPieces } from './engine/pieces.ts';
import { createRandom } from './engine/random.ts';
import { agree, type Target } from './engine/target.ts';

const budget = { seed: 'engine', runsMax: 4_000 };
const corpus = ['GET / HTTP/1.1\r\nHost: a\r\n\r\n', 'x=12;y=5'];

const failureOf = async (target: Omit<Target, 'name' | 'corpus'>) =>
  (await runCampaign({ name: 'planted', corpus, ...target }, budget)).failure;

test('an unexpected error is found and made as short as it gets', async () => {
  const failure = await failureOf({
    dictionary: ['magic'],
    check(input) {
      if (input.includes('magic') && input.length > 8) throw new TypeError('planted');
      return 'fine';
    },
  });
  expect(failure?.reason).toContain('planted');
  expect(failure && 'input' in failure && failure.input.length).toBe(9);
});

test('a parser whose result depends on the pieces is found', async () => {
  const lines = (pieces: readonly Buffer[]) =>
    pieces.flatMap(piece => piece.toString('latin1').split('\r\n')).filter(line => line !== '').length;
  const failure = await failureOf({
    check(input, random) {
      agree(lines(cutIntoPieces(input, random)), lines([input]), 'the lines are the same in pieces');
      return 'fine';
    },
  });
  expect(failure?.reason).toContain('the same in pieces');
});

test('cost that grows with the square of the input is found, and cost that grows with it is not', async () => {
  const trimmed = (input: Buffer) => input.toString('latin1').replace(/[ \t]+$/, '');
  const pumps = [{ prefix: 'x', unit: ' ', suffix: 'x' }];
  const failure = await failureOf({ pumps, workBytesMax: 16 << 10, work: trimmed, check: () => 'fine' });
  expect(failure?.reason).toContain('the cost grew');
  expect(failure && 'pump' in failure && failure.pump).toEqual(pumps[0]!);
  expect(
    await failureOf({ pumps, work: input => input.toString('latin1').split(' ').sort(), check: () => 'fine' }),
  ).toBeUndefined();
}, 60_000);

test('an input that takes too long is found', async () => {
  const failure = await failureOf({
    runCostMsMax: 20,
    check(input) {
      if (input.includes('ost: a'))
        for (const end = performance.now() + 60; performance.now() < end;) Math.sqrt(input.length);
      return 'fine';
    },
  });
  expect(failure?.reason).toContain('processor time');
});

test('the same seed makes the same inputs, and another seed others', async () => {
  const inputsOf = async (seed: string) => {
    const seen: string[] = [];
    await runCampaign(
      { name: 'seeded', corpus, check: input => (seen.push(input.toString('latin1')), String(input.length)) },
      { seed, runsMax: 500 },
    );
    return seen;
  };
  const first = await inputsOf('1');
  expect(await inputsOf('1')).toEqual(first);
  expect((await inputsOf('2')).slice(2)).not.toEqual(first.slice(2));
  expect(new Set(first).size).toBeGreaterThan(400);
});

test('pieces are the input again, and none is empty', () => {
  const random = createRandom('pieces');
  for (let run = 0; run < 2_000; run++) {
    const input = random.bytes(random.below(50));
    const pieces = cutIntoPieces(input, random);
    expect(Buffer.concat(pieces).equals(input)).toBe(true);
    expect(pieces.every(piece => piece.length > 0)).toBe(true);
  }
});

test('what is kept is found again', () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-fuzz-kept-'));
  try {
    const pump = { prefix: '\xff', unit: 'a', suffix: '' };
    keep('one', { input: Buffer.from([0, 255]) }, folder);
    keep('one', { pump }, folder);
    expect(readKept('one', folder)).toMatchObject({ inputs: [{ bytes: Buffer.from([0, 255]) }], pumps: [{ pump }] });
    expect(readKept('two', folder)).toEqual({ inputs: [], pumps: [] });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

const command = (...args: string[]) => {
  const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, join(import.meta.dir, 'run.ts'), ...args]);
  return { exitCode, text: stdout.toString() + stderr.toString() };
};

test('the command runs the targets that it is told, for as long as it is told', () => {
  expect(command('template-names', '--runs', '50', '--seed', 's')).toMatchObject({
    exitCode: 0,
    text: expect.stringMatching(/1 targets, seed s\n✓ template-names: 50 runs/),
  });
  expect(command('template-names', 'page-tokens', '--seconds', '1')).toMatchObject({
    exitCode: 0,
    text: expect.stringContaining('✓ page-tokens'),
  });
});

test.each([['--runs 0'], ['--seconds x'], ['--quick'], ['no-such-target']])('%p is refused with the usage', words => {
  expect(command(...words.split(' '))).toMatchObject({
    exitCode: 2,
    text: expect.stringContaining('usage: npm run fuzz'),
  });
});
