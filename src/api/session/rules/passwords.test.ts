import { expect, test } from 'bun:test';
import { createPasswords } from './passwords.ts';

test('a password is verified by its own hash, and no password has the placeholder hash', async () => {
  const passwords = createPasswords();
  const hash = await passwords.hash('correct horse battery');
  expect(hash).toStartWith('$argon2id$v=19$m=19456,t=2,p=1$');
  expect(await passwords.verify('correct horse battery', hash)).toBe(true);
  expect(await passwords.verify('correct horse', hash)).toBe(false);
  expect(await passwords.verify('', null)).toBe(false);
});

test('the number of waiting callers is limited', async () => {
  const passwords = createPasswords({ atOnce: 1, waitingMax: 1 });
  const tries = await Promise.allSettled([1, 2, 3].map(() => passwords.verify('x', null)));
  expect(tries.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
});
