import { readFileSync } from 'node:fs';
import { lowHostLimits } from '../host-limits.ts';
import { limited, ok, type Probe } from './probe.ts';

/** The host's own settings. */
const thisHost = {
  lowLimits: lowHostLimits,
  corePattern: () => readFileSync('/proc/sys/kernel/core_pattern', 'utf8').trim(),
};

/** What sandboxes share with each other and with the host, and who may use them. */
export const shareProbes = (requireSecure: boolean, { lowLimits, corePattern } = thisHost): Probe[] => [
  {
    name: 'shared limits',
    needed: false,
    look() {
      const low = lowLimits();
      if (low.length === 0)
        return ok('process IDs, threads, terminals and open files are enough for all sandboxes together');
      const names = low.map(
        ({ setting, present, least }) => `${setting.replaceAll('/', '.')} is ${present} of ${least}`,
      );
      return limited(
        names.join('; '),
        'A start of the platform raises them; where that is not allowed, raise them with sysctl: a few sandboxes ' +
          'can use them up.',
      );
    },
  },
  {
    name: 'core dumps',
    needed: false,
    look() {
      const pattern = corePattern();
      if (!pattern.startsWith('@')) return ok('no program of the host gets the memory of what crashes in sandboxes');
      return limited(
        `the host sends the memory of what crashes to ${pattern.slice(1)}, that of sandboxes too`,
        'sysctl kernel.core_pattern=core',
      );
    },
  },
  {
    name: 'unsecured sandboxes',
    needed: false,
    look() {
      if (requireSecure) return ok('refused: every new sandbox has a token of its own');
      return ok(
        'allowed: one that is created by POST /sandboxes without `secure: true` can be used by whoever knows its ' +
          'ID; ATOLL_REQUIRE_SECURE=1 refuses them',
      );
    },
  },
];
