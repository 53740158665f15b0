import { expect, test } from 'bun:test';
import { adviceFor } from './set-up.ts';

test('only a checkout is told to use npm', () => {
  expect(adviceFor('checkout', true).start).toBe('start it with `npm run up`');
  expect(adviceFor('release', false).start).toBe('start it with `atoll up`');
  expect(adviceFor('release', true).start).toBe('start it with `systemctl start atoll`');
  for (const origin of ['release', 'client'] as const)
    expect(Object.values(adviceFor(origin, false)).join()).not.toContain('npm');
  // The command line alone can't run a platform.
  expect(adviceFor('client', false).start).not.toContain('atoll up');
});
