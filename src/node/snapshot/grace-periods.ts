import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

/** Where the kernel is told to end grace periods at once: 1, or 0 as usual. */
const switchFile = '/sys/kernel/rcu_expedited';
/**
 * While it is there the switch is on, and a platform has turned it on. All installations have the same: one that was
 * killed may never start again.
 */
const markFile = '/run/atoll-grace-periods-hurried';

/**
 * Has the kernel end its grace periods at once while something is disposed of later: a restore waits for a dozen of
 * them, one for each namespace and mount, and a fifth of its time is that. The rest of the time they take as long as
 * usual, because whoever is hurried is interrupted.
 */
export type HurryGracePeriods = () => Disposable;

/**
 * Leaves the switch alone where it is on already, or can't be turned. What a crash has left on is turned off, and so it
 * is for another installation that works at that moment: it takes longer then.
 */
export function createHurry(mark = markFile, file = switchFile): HurryGracePeriods {
  let hurried = 0;
  const turnOn = () => {
    // Whoever else has turned it on may have done so since.
    if (readFileSync(file, 'utf8').trim() !== '0') return;
    writeFileSync(mark, '');
    writeFileSync(file, '1');
  };
  const turnOff = () => {
    if (!existsSync(mark)) return;
    writeFileSync(file, '0');
    rmSync(mark);
  };
  unlessRefused(turnOff);
  return () => {
    if (hurried++ === 0) unlessRefused(turnOn);
    return {
      [Symbol.dispose]() {
        if (--hurried === 0) unlessRefused(turnOff);
      },
    };
  };
}

/** In a container the switch may be read-only, and other kernels have none: all is as it was, and takes longer. */
function unlessRefused(work: () => void): void {
  try {
    work();
  } catch {
    // Whatever is in the way, nobody is to fail for it.
  }
}
