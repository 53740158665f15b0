import { AtollError } from '../../../base/error.ts';
import { createSemaphore } from '../../../base/concurrency/semaphore.ts';

/** Checks and makes hashes of passwords. Each takes memory and time: few run at once, and not too many wait. */
export type Passwords = {
  /** The hash to store. Throws `rate_limited` where too many wait. */
  hash(password: string): Promise<string>;
  /** Whether it is the password of `hash`; where that is null, false after the same work. Throws `rate_limited`. */
  verify(password: string, hash: string | null): Promise<boolean>;
};

/** Memory in KiB, and passes over it: OWASP's minimum for argon2id. */
const cost = { algorithm: 'argon2id', memoryCost: 19_456, timeCost: 2 } as const;

/** A hash of the same cost that matches no password. */
const nobodys = `$argon2id$v=19$m=19456,t=2,p=1$${'A'.repeat(43)}$${'A'.repeat(43)}`;

/** One for each process: it counts how many are under way. `waitingMax`: in addition to those. */
export function createPasswords(bounds = { atOnce: 2, waitingMax: 32 }): Passwords {
  const { atOnce, waitingMax } = bounds;
  const room = createSemaphore(atOnce);
  const work = <T>(task: () => Promise<T>): Promise<T> => {
    if (room.waiting() >= waitingMax)
      throw new AtollError('rate_limited', 'Too many passwords are being checked: wait a moment', {
        retryAfterSeconds: 1,
      });
    return room.run(task);
  };
  return {
    hash: async password => work(() => Bun.password.hash(password, cost)),
    verify: async (password, hash) =>
      (await work(() => Bun.password.verify(password, hash ?? nobodys))) && hash !== null,
  };
}
