import { createRandom, type Random } from './random.ts';
import type { Pump, Target } from './target.ts';
import type { Pool } from './mutate.ts';

const workBytesDefault = 64 << 10;
/** The ratio of the two inputs' lengths. */
const factor = 4;
/** Largest acceptable growth of the cost: a linear parser's grows by `factor`, a quadratic one's by its square. */
const growthMax = 9;
/** Less work than this, µs of processor time, can't be told from noise. */
const noticeableUs = 12_000;
const smallestUs = 1_500;
/**
 * A growth must show this many times in a row to count: other programs disturb one measurement, but don't make it
 * quadratic repeatedly.
 */
const confirmations = 12;

/** No disturbance takes this long: no need to measure again. */
const unmistakableUs = 500_000;

/** How the cost of a shape grew, or undefined if it is acceptable. */
export async function superlinear(target: Target, pump: Pump): Promise<string | undefined> {
  const long = target.workBytesMax ?? workBytesDefault;
  const shortest = { few: Number.POSITIVE_INFINITY, many: Number.POSITIVE_INFINITY };
  for (let round = 0; round < confirmations && (round === 0 || shortest.many < unmistakableUs); round++) {
    shortest.few = Math.min(shortest.few, await costOf(target, inputOf(pump, long / factor)));
    shortest.many = Math.min(shortest.many, await costOf(target, inputOf(pump, long)));
    if (shortest.many < noticeableUs || shortest.many < growthMax * Math.max(shortest.few, smallestUs))
      return undefined;
  }
  return `the cost grew from ${shortest.few} to ${shortest.many} µs where the input grew from ${long / factor} to ${long} bytes`;
}

/** Processor time of this process, µs. The ordinary runs judge what the work throws or answers. */
async function costOf(target: Target, input: Buffer): Promise<number> {
  const before = process.cpuUsage();
  try {
    await (target.work ? target.work(input) : target.check(input, createRandom(0)));
  } catch {
    // Refused: only its cost matters here.
  }
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

function inputOf({ prefix, unit, suffix }: Pump, length: number): Buffer {
  const times = Math.max(1, Math.floor((length - prefix.length - suffix.length) / Math.max(unit.length, 1)));
  return Buffer.from(prefix + unit.repeat(times) + suffix, 'latin1');
}

/** A shape made of pieces of known inputs and words. */
export function randomPump(random: Random, { inputs, words }: Pool): Pump {
  const input = random.pick(inputs);
  const [cut, next] = [random.below(input.length + 1), random.below(input.length + 1)];
  const unit = random.once(3)
    ? input.subarray(cut, cut + 1 + random.below(24))
    : random.once(2)
      ? random.pick(words)
      : Buffer.concat([random.pick(words), random.pick(words)]);
  return {
    prefix: input.toString('latin1', 0, cut).slice(-4096),
    unit: unit.length === 0 ? ' ' : unit.toString('latin1'),
    suffix: random.once(2) ? '' : input.toString('latin1', next).slice(0, 4096),
  };
}
