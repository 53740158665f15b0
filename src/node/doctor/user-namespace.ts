import { closeSync, openSync, readlinkSync, writeFileSync } from 'node:fs';
import { startProgram } from '../../base/process/child-process.ts';
import { AtollError } from '../../base/error.ts';
import { idsPerSandbox, slotOf } from '../layout.ts';

/** Longest time for making the namespace and for everything that is tried in it. */
const waitMsMax = 2_000;
const lifeMsMax = 60_000;

/** A user namespace with the ID range of a sandbox, and a process that keeps it. */
type UserNamespace = AsyncDisposable & { fd: number; baseId: number };

/** Makes a user namespace like that of a sandbox. Fails if the host forbids it. */
export async function openUserNamespace(): Promise<UserNamespace> {
  const program = Bun.which('unshare');
  if (!program) throw new AtollError('unavailable', 'unshare (util-linux) is not installed');
  const child = startProgram([program, '--user', 'sleep', 'infinity'], { input: 'ignore', timeoutMs: lifeMsMax });
  const end = async () => {
    child.kill();
    await child.ended;
  };
  try {
    const path = `/proc/${child.pid}/ns/user`;
    const deadline = performance.now() + waitMsMax;
    while (readlinkSync(path) === readlinkSync('/proc/self/ns/user')) {
      if (performance.now() > deadline) throw new AtollError('internal', 'no user namespace was made');
      await Bun.sleep(1);
    }
    const { baseId } = slotOf(0, 0);
    for (const map of ['uid_map', 'gid_map'])
      writeFileSync(`/proc/${child.pid}/${map}`, `0 ${baseId} ${idsPerSandbox}\n`);
    const fd = openSync(path, 'r');
    return {
      fd,
      baseId,
      async [Symbol.asyncDispose]() {
        closeSync(fd);
        await end();
      },
    };
  } catch (error) {
    await end();
    throw error;
  }
}
