import { once } from 'node:events';
import { createConnection } from 'node:net';

/** The slowest command of QEMU's monitor writes a machine's memory to its disk. */
const answerTimeoutMs = 15 * 60_000;
const prompt = '(qemu) ';

/**
 * Gives QEMU's monitor at `socket` one command and waits until it is done. Answers the monitor's output: empty if the
 * command prints nothing.
 */
export async function askMonitor(socket: string, command: string): Promise<string> {
  const connection = createConnection(socket);
  let text = '';
  const prompts = async (count: number) => {
    while (text.split(prompt).length <= count) await once(connection, 'data', { signal });
  };
  const signal = AbortSignal.timeout(answerTimeoutMs);
  connection.setEncoding('utf8').on('data', (part: string) => void (text += part));
  try {
    await once(connection, 'connect', { signal });
    await prompts(1);
    connection.write(`${command}\n`);
    await prompts(2);
  } finally {
    connection.destroy();
  }
  // Between the two prompts, the monitor echoes what was typed, with a terminal's cursor movements; its last line is
  // whole.
  const [, said = ''] = text.split(prompt);
  const lines = said.split('\r\n').slice(1);
  return lines.join('\n').trim();
}
