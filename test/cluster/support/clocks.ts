import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from './network.ts';

/** A library loaded into every program that reads the wrong clock: it adds seconds to the time of day only. */
const shim = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static const volatile int64_t *wrong;
__attribute__((constructor)) static void begin(void) {
  int file = open(CLOCK_FILE, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void *mapped = mmap(0, sizeof *wrong, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (mapped != MAP_FAILED) wrong = mapped;
}
int clock_gettime(clockid_t id, struct timespec *at) {
  int failed = syscall(SYS_clock_gettime, id, at);
  if (!failed && wrong && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) at->tv_sec += *wrong;
  return failed;
}
int gettimeofday(struct timeval *at, void *zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
`;

/** Clocks that can be set wrong while programs use them. */
export type Clocks = Disposable & {
  /** A command-line prefix: the command and everything it starts use the clock of this name. */
  enter(name: string): string[];
  set(name: string, wrongSeconds: number): void;
};

/** Makes such clocks, with the C compiler that set-up needs too. */
export async function startClocks(names: readonly string[]): Promise<Clocks> {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-clocks-'));
  // The platform's parts run as users of their own.
  chmodSync(folder, 0o755);
  const set = (name: string, wrongSeconds: number) =>
    writeFileSync(join(folder, name, 'clock'), new BigInt64Array([BigInt(wrongSeconds)]), { flag: 'r+' });
  writeFileSync(join(folder, 'shim.c'), shim);
  for (const name of names) {
    const own = join(folder, name);
    for (const part of ['upper', 'work']) mkdirSync(join(own, part), { recursive: true });
    writeFileSync(join(own, 'clock'), new BigInt64Array([0n]));
    const define = `-DCLOCK_FILE="${join(own, 'clock')}"`;
    await run('cc', '-shared', '-fPIC', '-O1', define, '-o', join(own, 'shim.so'), join(folder, 'shim.c'));
    // The parts have no environment, so the loader itself must be told.
    writeFileSync(join(own, 'upper/ld.so.preload'), `${join(own, 'shim.so')}\n`);
  }
  return {
    set,
    enter(name) {
      const own = join(folder, name);
      const layers = `lowerdir=/etc,upperdir=${join(own, 'upper')},workdir=${join(own, 'work')}`;
      const script = `mount -t overlay overlay -o ${layers} /etc && exec "$@"`;
      return ['unshare', '--mount', '--propagation', 'slave', 'sh', '-c', script, 'sh'];
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}
