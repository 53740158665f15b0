import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

/** Makes the kernel end grace periods at once: 1, or 0 as usual. */
const switchFile = '/sys/kernel/rcu_expedited';
/**
 * While this file exists the switch is on, and a platform has turned it on. All installations share it: one that was
 * killed may never start again.
 */
const markFile = '/run/atoll-grace-periods-hurried';

/**
 * Makes the kernel end its grace periods at once until the answer is disposed of: a restore waits for a dozen of them,
 * one for each namespace and mount, which is a fifth of its time. At all other times they take as long as usual,
 * because hurrying them interrupts everybody.
 */
export type HurryGracePeriods = () => Disposable;

/**
 * Leaves the switch alone if it is already on, or can't be turned. Turns off what a crash has left on, even if another
 * installation is using it at that moment: that one then takes longer.
 */
export function createHurry(mark = markFile, file = switchFile): HurryGracePeriods {
  let hurried = 0;
  const turnOn = () => {
    // Somebody else may have turned it on since.
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

/**
 * In a container the switch may be read-only, and other kernels have none: then nothing changes, and restores take
 * longer.
 */
function unlessRefused(work: () => void): void {
  try {
    work();
  } catch {
    // Whatever is in the way, nobody should fail because of it.
  }
}
