import type { Sandbox } from 'e2b';

/** A program that counts only in its memory, and tells the count on request. */
const program = `
import os, signal, time
count = 0
def say(*_):
    with open('/tmp/said.part', 'w') as file:
        file.write(f'{os.getpid()} {count}')
    os.rename('/tmp/said.part', '/tmp/said')
signal.signal(signal.SIGUSR1, say)
open('/tmp/counts', 'w').write(str(os.getpid()))
while True:
    count += 1
    time.sleep(0.05)
`;

type Counted = { pid: string; count: number };

/** Starts the program, and writes a file beside it. */
export async function startCounter(sandbox: Sandbox): Promise<Counted> {
  await sandbox.files.write('/tmp/count.py', program);
  await sandbox.commands.run('echo kept > /tmp/kept');
  await sandbox.commands.run('python3 /tmp/count.py', { background: true, timeoutMs: 0 });
  return counted(sandbox);
}

/** Asks the running program. */
export async function counted(sandbox: Sandbox): Promise<Counted> {
  const ask =
    'until [ -s /tmp/counts ]; do sleep 0.05; done; rm -f /tmp/said; ' +
    'kill -USR1 $(cat /tmp/counts); until [ -f /tmp/said ]; do sleep 0.05; done; cat /tmp/said';
  const [pid = '', count = ''] = (await sandbox.commands.run(ask)).stdout.split(' ');
  return { pid, count: Number(count) };
}
