import type { StageState } from './stage.ts';

/** The shell command that ENTRYPOINT and CMD make together; undefined if there is neither. */
export function startCommandOf({
  entrypoint,
  cmd,
  shell,
}: Pick<StageState, 'entrypoint' | 'cmd' | 'shell'>): string | undefined {
  // An ENTRYPOINT that is a command line does not take CMD as its arguments.
  const parts =
    typeof entrypoint === 'string' && entrypoint !== ''
      ? [...shell, entrypoint]
      : [...words(entrypoint, shell), ...words(cmd, shell)];
  return parts.length === 0 ? undefined : parts.map(quoted).join(' ');
}

function words(command: string | string[], shell: string[]): string[] {
  if (typeof command !== 'string') return command;
  return command === '' ? [] : [...shell, command];
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
