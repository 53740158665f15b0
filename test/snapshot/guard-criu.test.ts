import { expect, test } from 'bun:test';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { killIfThere } from '../../src/base/if-there.ts';
import { guardCriu } from '../../src/node/snapshot/guard-criu.ts';
import { waitFor } from '../support/process.ts';

const host = { runDir: '/nowhere' };
const threads = 4;
const target = `import threading,time\nfor _ in range(${threads - 1}): threading.Thread(target=time.sleep, args=(600,)).start()`;
/** Traces all threads of a process, and waits for the first one alone, as CRIU does. PTRACE_SEIZE: linux/ptrace.h. */
const tracer =
  'import ctypes,os,sys; pid=int(sys.argv[1]); libc=ctypes.CDLL(None)\n' +
  'for tid in os.listdir(f"/proc/{pid}/task"): assert libc.ptrace(0x4206, int(tid), 0, 0) == 0\n' +
  'os.waitpid(pid, 0x40000000)';

const statusOf = (pid: number) => readFileSync(`/proc/${pid}/status`, 'utf8');

/** A process of several threads that was killed under a tracer, which waits for it without end. */
async function stuck(config: string): Promise<AsyncDisposable & { pid: number; tracer: ReturnType<typeof Bun.spawn> }> {
  const traced = Bun.spawn(['python3', '-c', target]);
  await waitFor('its threads', () => readdirSync(`/proc/${traced.pid}/task`).length === threads);
  const tracing = Bun.spawn(['python3', '-c', tracer, `${traced.pid}`, config], { stderr: 'inherit' });
  await waitFor('the tracer to have all of them', () =>
    readdirSync(`/proc/${traced.pid}/task`).every(tid => !/TracerPid:\t0/.test(statusOf(Number(tid)))),
  );
  killIfThere(traced.pid);
  await waitFor('its end', () => /State:\tZ/.test(statusOf(traced.pid)));
  return {
    pid: traced.pid,
    tracer: tracing,
    async [Symbol.asyncDispose]() {
      killIfThere(tracing.pid);
      await Promise.all([tracing.exited, traced.exited]);
    },
  };
}

// The kernel tells of the end of a traced process's first thread when the tracer has reaped the others.
test('a CRIU that waits for a process that was killed under it is ended, and nobody else is', async () => {
  // Before they are made: of a sandbox, too, a process may begin when the dump has.
  using _guard = guardCriu(host, 'cut', process.pid);
  await using other = await stuck(join(host.runDir, 'of another run.conf'));
  await using criu = await stuck(join(host.runDir, 'cut.conf'));
  await criu.tracer.exited;
  expect(criu.tracer.signalCode).toBe('SIGKILL');
  expect(other.tracer.exitCode).toBe(null);
  expect(statusOf(other.pid)).toContain(`TracerPid:\t${other.tracer.pid}\n`);
}, 60_000);

/** Makes a process, and does not look what becomes of it, as CRIU does where it waits for a word of it. */
const maker =
  'import subprocess,sys,time\n' + 'print(subprocess.Popen(["sleep", "600"]).pid, flush=True)\n' + 'time.sleep(600)';

async function making(
  config: string,
): Promise<AsyncDisposable & { made: number; maker: ReturnType<typeof Bun.spawn> }> {
  const process = Bun.spawn(['python3', '-c', maker, config], { stdout: 'pipe' });
  const { value } = await process.stdout.getReader().read();
  const made = Number(new TextDecoder().decode(value));
  return {
    made,
    maker: process,
    async [Symbol.asyncDispose]() {
      for (const pid of [made, process.pid]) killIfThere(pid);
      await process.exited;
    },
  };
}

test('a CRIU whose sandbox has ended under it is ended, and one whose sandbox is there is not', async () => {
  await using criu = await making(join(host.runDir, 'ended.conf'));
  await using other = await making(join(host.runDir, 'alive.conf'));
  using _guard = guardCriu(host, 'ended', criu.made);
  using _other = guardCriu(host, 'alive', other.made);
  killIfThere(criu.made);
  await criu.maker.exited;
  expect(criu.maker.signalCode).toBe('SIGKILL');
  expect(other.maker.exitCode).toBe(null);
}, 60_000);
