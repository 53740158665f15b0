import { CommandExitError, type Sandbox } from 'e2b';
import { type Feature, same } from './feature.ts';
import { withSandbox } from './sandbox.ts';

const timeoutMs = 180_000;

/** A command that may fail: its exit code and all its output. */
async function outcome(sandbox: Sandbox, command: string): Promise<{ exitCode: number; text: string }> {
  try {
    const { stdout, stderr } = await sandbox.commands.run(command, { timeoutMs });
    return { exitCode: 0, text: `${stdout}${stderr}` };
  } catch (error) {
    if (!(error instanceof CommandExitError)) throw error;
    return { exitCode: error.exitCode, text: `${error.stdout}${error.stderr}${error.error ?? ''}` };
  }
}

const alive = async (sandbox: Sandbox) =>
  same((await sandbox.commands.run('echo alive', { timeoutMs })).stdout, 'alive\n', 'the sandbox afterwards');

/** Reaches each limit, and checks that the sandbox goes on. */
export const limitFeatures: Feature[] = [
  {
    name: 'memory limit',
    look: () =>
      withSandbox(async sandbox => {
        const { exitCode, text } = await outcome(sandbox, 'python3 -c "x = bytearray(3 << 30); print(len(x))"');
        if (exitCode === 0) throw new Error('3 GiB were given to a sandbox of less');
        await alive(sandbox);
        return /memory/i.test(text)
          ? 'the program was killed, and was told why'
          : `the program was killed (${exitCode})`;
      }),
  },
  {
    name: 'process limit',
    look: () =>
      withSandbox(async sandbox => {
        // Threads count as processes do, and take less of the sandbox's memory.
        const script =
          'import os, threading\nthreading.stack_size(262144)\nhold = threading.Event()\nn = 0\ntry:\n    while n < 6000: threading.Thread(target=hold.wait, daemon=True).start(); n += 1\nexcept RuntimeError: print(n, flush=True)\nos._exit(0)';
        const { text } = await outcome(sandbox, `python3 -c "${script}"`);
        const started = Number(text);
        if (!(started > 1000 && started <= 4096)) throw new Error(`${text} threads`);
        await alive(sandbox);
        return `${started} threads, then EAGAIN`;
      }),
  },
  {
    name: 'CPU limit',
    look: () =>
      withSandbox(async sandbox => {
        // Four busy processes get no more, over some seconds, than the sandbox's cores. A busy machine gives them less.
        const { cpuCount } = await sandbox.getInfo();
        const script = 'for i in 1 2 3 4; do timeout 6 sh -c "while :; do :; done" & done; wait; times';
        const { text } = await outcome(sandbox, `bash -c '${script}'`);
        const used =
          text
            .trim()
            .split('\n')
            .at(-1)
            ?.match(/(\d+)m([\d.]+)s (\d+)m([\d.]+)s/)
            ?.slice(1)
            .map(Number) ?? [];
        const seconds = (used[0] ?? 0) * 60 + (used[1] ?? 0) + (used[2] ?? 0) * 60 + (used[3] ?? 0);
        if (!(seconds > 0.1 && seconds < 6 * cpuCount * 1.3))
          throw new Error(`${seconds} s of CPU in 6 s with ${cpuCount} cores: ${text}`);
        return `${seconds.toFixed(1)} s of CPU in 6 s with a limit of ${cpuCount}`;
      }),
  },
  {
    name: 'disk limit',
    look: () =>
      withSandbox(async sandbox => {
        const { text } = await outcome(
          sandbox,
          'fallocate -l 900G big; fallocate -l 20G big2; df -k --output=size / | tail -1; rm -f big big2; echo after > small && cat small',
        );
        if (!/No space left/.test(text) || !text.includes('after\n')) throw new Error(text);
        return 'ENOSPC, and writing goes on after a deletion';
      }),
  },
  {
    name: 'devices',
    look: () =>
      withSandbox(async sandbox => {
        const { text } = await outcome(
          sandbox,
          'sudo mknod /tmp/disk b 253 0; sudo mknod /tmp/kmsg c 1 11; head -c 4 /dev/urandom | wc -c; echo > /dev/null && ls /dev',
        );
        if (text.split('Operation not permitted').length !== 3 || !text.startsWith('4\n')) throw new Error(text);
      }),
  },
];
