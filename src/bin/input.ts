import type { ReadStream, WriteStream } from 'node:tty';
import type { Input } from '../cli/terminal/command.ts';

/**
 * What is typed or piped into this process; nothing is read before a command asks for it. `release` lets the process
 * end before its input does.
 */
export function inputOf(stdin: () => ReadStream, stdout: WriteStream): Input & { release(): void } {
  let opened: ReadStream | undefined;
  const open = () => (opened ??= stdin());
  return {
    release: () => void opened?.destroy(),
    get isTerminal() {
      return open().isTTY === true;
    },
    chunks: open,
    setRaw(isRaw) {
      open().setRawMode(isRaw);
    },
    size: () => ({ columns: stdout.columns ?? 80, rows: stdout.rows ?? 24 }),
    onResize(listener) {
      stdout.on('resize', listener);
      return () => void stdout.off('resize', listener);
    },
  };
}
