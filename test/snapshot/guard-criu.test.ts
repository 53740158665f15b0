import { expect, test } from 'bun:test';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { killIfThere } from '../../src/base/if-there.ts';
import { guardCriu } from '../../src/node/snapshot/guard-criu.ts';
import { waitFor } from '../support/process.ts';

const host = { runDir: '/nowhere' };
const everyMs = 200;

function guard(name: string, first: number) {
  const guarding = guardCriu(host, name, everyMs);
  guarding.watch(first);
  return guarding;
}
const threads = 4;
const target = `import threading,time\nfor _ in range(${threads - 1}): threading.Thread(target=time.sleep, args=(600,)).start()`;
/** Traces all threads of a process and waits only for the first one, as CRIU does. PTRACE_SEIZE: linux/ptrace.h. */
const tracer =
  'import ctypes,os,sys; pid=int(sys.argv[1]); libc=ctypes.CDLL(None)\n' +
  'for tid in os.listdir(f"/proc/{pid}/task"): assert libc.ptrace(0x4206, int(tid), 0, 0) == 0\n' +
  'os.waitpid(pid, 0x40000000)';

const statusOf = (pid: number) => readFileSync(`/proc/${pid}/status`, 'utf8');

/** A process of several threads that was killed under a tracer that waits for it forever. */
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

// The kernel reports the end of a traced process's first thread only once the tracer has reaped the others.
test('a CRIU that waits for a process that was killed under it is ended, and nobody else is', async () => {
  // Before they are created: a process of a sandbox, too, may start after the dump has.
  using _guard = guard('cut', process.pid);
  await using other = await stuck(join(host.runDir, 'of another run.conf'));
  await using criu = await stuck(join(host.runDir, 'cut.conf'));
  await criu.tracer.exited;
  expect(criu.tracer.signalCode).toBe('SIGKILL');
  expect(other.tracer.exitCode).toBe(null);
  expect(statusOf(other.pid)).toContain(`TracerPid:\t${other.tracer.pid}\n`);
}, 60_000);

/** Creates a process and ignores its fate, as CRIU does where it waits for a message from it. */
const maker =
  'import subprocess,sys,time\n' + 'print(subprocess.Popen(sys.argv[2:]).pid, flush=True)\n' + 'time.sleep(600)';
/** Runs again and again, each time for a moment. */
const working = ['python3', '-c', `import time\nwhile True: time.sleep(${everyMs / 4_000})`];

async function making(
  config: string,
  argv = working,
): Promise<AsyncDisposable & { made: number; maker: ReturnType<typeof Bun.spawn> }> {
  const process = Bun.spawn(['python3', '-c', maker, config, ...argv], { stdout: 'pipe' });
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
  using _guard = guard('ended', criu.made);
  using _other = guard('alive', other.made);
  killIfThere(criu.made);
  await criu.maker.exited;
  expect(criu.maker.signalCode).toBe('SIGKILL');
  expect(other.maker.exitCode).toBe(null);
}, 60_000);

test('a CRIU is ended when all that it has made wait for each other, and not while they wait for the platform', async () => {
  const asleep = ['sleep', '600'];
  await using waits = await making(join(host.runDir, 'waits.conf'), asleep);
  await using other = await making(join(host.runDir, 'works.conf'));
  await using criu = await making(join(host.runDir, 'still.conf'), asleep);
  using waited = guard('waits', waits.made);
  using _other = guard('works', other.made);
  const decided = Promise.withResolvers<void>();
  const work = waited.during(() => decided.promise);
  using _guard = guard('still', criu.made);
  await criu.maker.exited;
  expect(criu.maker.signalCode).toBe('SIGKILL');
  await Bun.sleep(2 * everyMs);
  expect([waits.maker.exitCode, other.maker.exitCode]).toEqual([null, null]);
  decided.resolve();
  await work;
  await waits.maker.exited;
  expect(waits.maker.signalCode).toBe('SIGKILL');
}, 60_000);
