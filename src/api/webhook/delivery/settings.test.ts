import { expect, test } from 'bun:test';
import { backoffOf, defaultWebhookSettings } from './settings.ts';

test('waits grow up to their maximum, and randomness only shortens them', () => {
  const waits = (random: number) =>
    Array.from(
      { length: defaultWebhookSettings.attemptsMax - 1 },
      (_, index) => backoffOf(defaultWebhookSettings, index + 1, random) / 1000,
    );
  expect(waits(0)).toEqual([5, 15, 45, 135, 405, 1215, 3600, 3600, 3600]);
  for (const [index, wait] of waits(0.999).entries()) expect(wait).toBeGreaterThan((waits(0)[index] ?? 0) * 0.74);
});
