import { simulateSeeds } from '../../simulation/support/seeds.ts';
import { sumOf } from './sums.ts';

declare const self: Worker;

// Simulates what it is given, one block of seeds after the other: a processor's part of the proof.
self.onmessage = async ({ data }: MessageEvent<{ first: number; count: number }>) => {
  self.postMessage(sumOf(await simulateSeeds(data.first, data.count)));
};
