import { createInterface } from 'node:readline/promises';
import type { Terminal } from './command.ts';

/** Asks a person at the keyboard; a script that gives the command means it. */
export async function isSure(terminal: Terminal, question: string): Promise<boolean> {
  if (!terminal.isInteractive || process.stdin.isTTY !== true) return true;
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await reader.question(`${question} [y/N] `)).trim());
  } finally {
    reader.close();
  }
}
