import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { ifThere } from '../../../src/base/if-there.ts';

/** Those who bring memory to a sandbox: the one that brings it, and the one that ends the sandbox where that ends. */
export type Bringers = { keeper: number; bringer: number };

/**
 * All of an installation, by its directory in /run. The keeper is first of its session, which the one that started it
 * is not: that one and the keeper look like the two for a moment.
 */
export function bringersOf(runDir: string): Bringers[] {
  return processesWith('bring-later', `${runDir}/later/`)
    .map(pid => ({ keeper: parentOf(pid), bringer: pid }))
    .filter(({ keeper, bringer }) => sessionOf(bringer) === keeper);
}

/** Whether CRIU has handed over all that this one brings memory to, and it has not brought all. */
export function bringsAlone({ bringer }: Bringers): boolean {
  const directory = `/proc/${bringer}/fd`;
  const files = ifThere(() => readdirSync(directory), []).map(fd =>
    ifThere(() => readlinkSync(join(directory, fd)), ''),
  );
  return files.includes('anon_inode:[userfaultfd]') && !files.some(file => file.startsWith('socket:'));
}

/** How many processes of theirs there are. */
export const bringersLeft = (runDir: string) => processesWith('bring-later', `${runDir}/later/`).length;

/** Who waits until all memory of a sandbox is there. */
export const waitersOf = (runDir: string) => processesWith('wait-later', `${runDir}/later/`);

/** What is still to come, by sandbox. */
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

// Source: proc_pid_stat(5), the fourth field behind the name, which may have anything in it.
const sessionOf = (pid: number) =>
  Number(
    ifThere(() => readFileSync(`/proc/${pid}/stat`, 'utf8'), '')
      .split(') ')
      .at(-1)
      ?.split(' ')[3],
  );
