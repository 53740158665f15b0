import { simulateSeeds } from '../../simulation/support/seeds.ts';
import { sumOf } from './sums.ts';

declare const self: Worker;

// Simulates the given blocks of seeds one after another: one processor's part of the proof.
self.onmessage = async ({ data }: MessageEvent<{ first: number; count: number }>) => {
  self.postMessage(sumOf(await simulateSeeds(data.first, data.count)));
};
