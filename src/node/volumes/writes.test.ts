import { expect, test } from 'bun:test';
import { tmpdir } from 'node:os';
import { createWrites } from './writes.ts';

test('of many uploads that come at once no more begin than may be under way', async () => {
  const { admit } = createWrites(tmpdir());
  const admitted = await Promise.allSettled(Array.from({ length: 200 }, admit));
  const places = admitted.flatMap(each => (each.status === 'fulfilled' ? [each.value] : []));
  expect(places).toHaveLength(128);
  await expect(admit()).rejects.toMatchObject({ code: 'unavailable' });
  places[0]?.[Symbol.dispose]();
  await admit();
});
