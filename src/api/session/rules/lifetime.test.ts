import { expect, test } from 'bun:test';
import { isLive, sessionIdleSeconds, sessionSeconds } from './lifetime.ts';

test('a session ends after a long idle time, and at its latest end in any case', () => {
  const second = 1_000_000;
  const session = { createdAtUs: 0, lastUsedAtUs: 0 };
  expect(isLive(session, (sessionIdleSeconds - 1) * second)).toBe(true);
  expect(isLive(session, sessionIdleSeconds * second)).toBe(false);
  const used = { createdAtUs: 0, lastUsedAtUs: (sessionSeconds - 1) * second };
  expect(isLive(used, (sessionSeconds - 1) * second)).toBe(true);
  expect(isLive(used, sessionSeconds * second)).toBe(false);
});
