import { expect, test } from 'bun:test';
import { reachableAddresses } from './reachable.ts';

test('a registry that no name server knows is refused in a sentence that says what helps', async () => {
  const host = 'registry.invalid';
  await expect(reachableAddresses({ host, isSecure: true }, new Set())).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringMatching(/^registry\.invalid, where the image comes from, has no address .*images\.json/),
  });
});
