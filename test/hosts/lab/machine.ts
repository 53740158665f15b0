import { run, type Outcome } from './program.ts';

/** A machine that checks run on as root: a guest, or the laboratory's own machine. */
export type Machine = {
  name: string;
  kind: 'guest' | 'here';
  /** Runs a bash script to its end. Its output is also added to the file `log`. */
  run(script: string, options: { timeoutMs: number; log?: string }): Promise<Outcome>;
  /** Really restarts the machine, and waits until it is back. */
  reboot(): Promise<void>;
};

/** The machine that the laboratory runs on. It is not rebooted. */
export function thisMachine(): Machine {
  return {
    name: 'here',
    kind: 'here',
    run: (script, { timeoutMs, log }) =>
      run(['bash', '-c', script], { timeoutMs, ...(log === undefined ? {} : { log }) }),
    reboot: () => Promise.reject(new Error('this machine is not rebooted for a test')),
  };
}
