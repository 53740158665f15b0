/** Programs of the platform that it starts itself. Only `src/bin` knows what each runs. */
type OwnProgram = 'node' | 'api' | 'edge' | 'gate' | 'egress-proxy';

/** Option by which the executable of a release is one of the platform's programs, named behind it. */
export const programOption = '--program';

/** Whether this runs from the executable of a release, which holds all of the source, and not from a checkout. */
export const isRelease: boolean = import.meta.dir.startsWith('/$bunfs/');

/**
 * The command line of a program: in a checkout its `source` (a path) on the runtime that this process has, in a release
 * the same executable. Neither .env nor bunfig.toml of the working directory changes what runs.
 */
export function commandOfProgram(name: OwnProgram, source: string): string[] {
  return isRelease
    ? [process.execPath, programOption, name]
    : [process.execPath, '--no-env-file', '--config=/dev/null', source];
}
