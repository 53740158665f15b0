import { statSync } from 'node:fs';
import { join } from 'node:path';

/** Programs of the platform that it starts itself. Only `src/bin` knows what each runs. */
type OwnProgram = 'node' | 'api' | 'edge' | 'gate' | 'egress-proxy';

/** Option by which the platform's executable is one of its programs, named behind it. */
export const programOption = '--program';

/** Whether this runs from the compiled executable, which contains all of the source, and not from source files. */
export const isCompiled: boolean = import.meta.dirname.startsWith('/$bunfs/');

/** Neither .env nor bunfig.toml of the working directory may change what runs. The executable looks for neither. */
const fromSource = ['--no-env-file', '--config=/dev/null', join(import.meta.dirname, '../../bin/executable.ts')];

/**
 * A path to the program that a process runs: `name` or, where another version has taken that name since, the kernel's
 * path to the running one. Whoever may inspect the process can run it.
 */
export function runningProgram(name: string, pid: number): string {
  const running = `/proc/${pid}/exe`;
  const [named, own] = [name, running].map(path => statSync(path, { throwIfNoEntry: false }));
  return named && own && named.ino === own.ino && named.dev === own.dev ? name : running;
}

/** The command line of `atoll`, from the same source as this process. */
export const commandOfAtoll = (...args: string[]): string[] => [
  isCompiled ? runningProgram(process.execPath, process.pid) : process.execPath,
  ...(isCompiled ? [] : fromSource),
  ...args,
];

/** The command line that runs another program of the platform, compiled or from the same source as this process. */
export const commandOfProgram = (name: OwnProgram): string[] => commandOfAtoll(programOption, name);
