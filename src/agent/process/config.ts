import { AtollError } from '../../base/error.ts';
import {
  asMessage,
  messageField,
  stringField,
  stringMapField,
  stringsField,
  uint32Field,
  type Message,
} from '../connect/message.ts';

/** A command as a client gave it, and as `List` shows it. */
export type ProcessConfig = { cmd: string; args: string[]; envs: Record<string, string>; cwd?: string };

/** Size of a terminal in characters. */
export type TerminalSize = { cols: number; rows: number };

/** Larger ones don't fit into the kernel's `struct winsize`. */
const terminalSideMax = 0xffff;

/** Reads `ProcessConfig` of a start. Errors: `invalid`, naming the field. */
export function readProcessConfig(value: unknown): ProcessConfig {
  const message = asMessage(value, 'process');
  const config: ProcessConfig = {
    cmd: stringField(message, 'cmd') ?? '',
    args: stringsField(message, 'args'),
    envs: stringMapField(message, 'envs'),
  };
  const cwd = stringField(message, 'cwd');
  if (cwd !== undefined) config.cwd = cwd;
  for (const text of [config.cmd, ...config.args])
    if (text.includes('\0')) throw new AtollError('invalid', 'an argument contains a zero byte');
  for (const [name, text] of Object.entries(config.envs)) {
    if (name === '' || /[=\0]/.test(name) || text.includes('\0'))
      throw new AtollError('invalid', `'${name.slice(0, 40)}' can't be an environment variable`);
  }
  return config;
}

/** The size of a terminal; a side that is absent or 0 gets the classic 80 × 24. */
export function readTerminalSize(pty: Message): TerminalSize {
  const size = messageField(pty, 'size') ?? {};
  const side = (name: string, fallback: number) => Math.min(uint32Field(size, name) || fallback, terminalSideMax);
  return { cols: side('cols', 80), rows: side('rows', 24) };
}
