import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isCompiled } from './own-program.ts';

/**
 * What this runs from: a checkout sets itself up, a release is set up already, and the command line alone can't run a
 * platform.
 */
type Origin = 'checkout' | 'release' | 'client';

/** What to tell people to do, as parts of sentences. */
export type Advice = {
  /** For when no platform runs. */
  start: string;
  /** For when something is missing that set-up makes or installs. */
  setUp: string;
  /** For when a program of the distribution is missing. */
  install: string;
  /** The next start does that by itself. */
  installs: boolean;
};

/** Where `atoll install` puts services. */
export const unitFolder = '/etc/systemd/system';

/** The file of a service that `atoll install` makes. */
export const unitFileOf = (name: string): string => join(unitFolder, `${name}.service`);

const root = isCompiled ? join(dirname(process.execPath), '..') : join(import.meta.dirname, '../../..');

/** The words that fit the installation on this machine. */
export function adviceFor(origin: Origin, hasService: boolean): Advice {
  if (origin === 'checkout')
    return {
      start: 'start it with `npm run up`',
      setUp: 'run `npm run up`',
      install: 'run `npm run up`, which installs it',
      installs: true,
    };
  const starter = hasService ? '`systemctl start atoll`' : '`atoll up`';
  return {
    start: origin === 'client' ? 'start one where the whole release is installed' : `start it with ${starter}`,
    setUp: 'install the whole release again',
    install: 'install the package of the distribution that has it',
    installs: false,
  };
}

/** The origin, judged by what is beside the program. */
function originOf(folder: string): Origin {
  if (existsSync(join(folder, 'scripts/prepare.mjs'))) return 'checkout';
  return existsSync(join(folder, 'dist/agent')) ? 'release' : 'client';
}

/** What to do on this machine. */
export const advice: Advice = adviceFor(originOf(root), existsSync(unitFileOf('atoll')));
