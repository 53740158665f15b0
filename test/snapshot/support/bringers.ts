import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { ifThere } from '../../../src/base/if-there.ts';

/**
 * The processes that bring memory to a sandbox: the bringer, and the keeper, which ends the sandbox if the bringer
 * ends.
 */
export type Bringers = { keeper: number; bringer: number };

/**
 * All of an installation, by its directory in /run. The keeper leads its session, unlike the process that started it:
 * for a moment, that one and the keeper look like the two.
 */
export function bringersOf(runDir: string): Bringers[] {
  return processesWith('bring-later', `${runDir}/later/`)
    .map(pid => ({ keeper: parentOf(pid), bringer: pid }))
    .filter(({ keeper, bringer }) => sessionOf(bringer) === keeper);
}

/** Whether CRIU has handed over everything that this bringer serves, and the bringer is not done yet. */
export function bringsAlone({ bringer }: Bringers): boolean {
  const directory = `/proc/${bringer}/fd`;
  const files = ifThere(() => readdirSync(directory), []).map(fd =>
    ifThere(() => readlinkSync(join(directory, fd)), ''),
  );
  return files.includes('anon_inode:[userfaultfd]') && !files.some(file => file.startsWith('socket:'));
}

/** How many of these processes there are. */
export const bringersLeft = (runDir: string) => processesWith('bring-later', `${runDir}/later/`).length;

/** The processes that wait until all memory of a sandbox is there. */
export const waitersOf = (runDir: string) => processesWith('wait-later', `${runDir}/later/`);

/** What is still to arrive, by sandbox. */
export const plansOf = (runDir: string) =>
  ifThere(() => readdirSync(join(runDir, 'later')), []).filter(name => !name.endsWith('.log'));

function processesWith(...words: string[]): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(pid => {
      const line = ifThere(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'), '');
      return words.every(word => line.includes(word));
    });
}

const parentOf = (pid: number) =>
  Number(ifThere(() => /^PPid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1], '0'));

// Source: proc_pid_stat(5), the fourth field after the name, which may contain anything.
const sessionOf = (pid: number) =>
  Number(
    ifThere(() => readFileSync(`/proc/${pid}/stat`, 'utf8'), '')
      .split(') ')
      .at(-1)
      ?.split(' ')[3],
  );
