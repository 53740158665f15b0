import type { Sandbox } from 'e2b';

/** Writes files named after the digests of their contents, one after another, and counts only in its memory. */
const program = (pauseSeconds: number) => `
import hashlib, os, random, time
os.makedirs('/home/user/written', exist_ok=True)
seen = hashlib.sha256()
count = 0
while True:
    content = random.randbytes(20_000)
    name = hashlib.sha256(content).hexdigest()
    with open('/home/user/written/part', 'wb') as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.rename('/home/user/written/part', f'/home/user/written/{name}')
    seen.update(name.encode())
    count += 1
    with open('/tmp/written.part', 'w') as file:
        file.write(f'{os.getpid()} {count} {seen.hexdigest()}')
    os.rename('/tmp/written.part', '/tmp/written')
    time.sleep(${pauseSeconds})
`;

/** What such a program reports. */
type Written = { pid: string; count: number };

/** Starts the program. `pauseSeconds`: the pause between two files. */
export async function startWriter(sandbox: Sandbox, pauseSeconds = 0.1): Promise<Written> {
  await sandbox.files.write('/tmp/write.py', program(pauseSeconds));
  await sandbox.commands.run('python3 /tmp/write.py', { background: true, timeoutMs: 0 });
  return written(sandbox, 0);
}

/** Waits until it has written more than `count` files, and compares all of them with their names. */
export async function written(sandbox: Sandbox, count: number): Promise<Written> {
  const wait = `until [ -f /tmp/written ] && [ "$(cut -d' ' -f2 /tmp/written)" -gt ${count} ]; do sleep 0.2; done`;
  // Many of them on a small machine take time.
  const options = { timeoutMs: 600_000, requestTimeoutMs: 600_000 };
  const said = (await sandbox.commands.run(`${wait}; cat /tmp/written`, options)).stdout.split(' ');
  const compare = `cd /home/user/written; for f in $(ls | grep -v part); do echo "$f  $f"; done | sha256sum --check --quiet`;
  await sandbox.commands.run(compare, options);
  const files = Number((await sandbox.commands.run('ls /home/user/written | grep -v part | wc -l', options)).stdout);
  const [pid = '', writes = ''] = said;
  if (files < Number(writes)) throw new Error(`${files} files are left of ${writes}`);
  return { pid, count: Number(writes) };
}
