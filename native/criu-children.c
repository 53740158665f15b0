// Preloaded into CRIU beside namespace-owner.c. A CRIU that restores ends with the helper, by a signal that the kernel
// sends it then. What it forks does not get that signal: a child that it tries the kernel with sleeps without end, and
// holds the mounts of the helper's namespace. Here each child ends with its CRIU. What CRIU makes of a sandbox is made by
// no such call, and by no process that has such a signal.
//
// A CRIU that dumps goes on without the helper: as nobody answers at the end of the dump, it takes back what it has done.
// To be killed in the middle would cost the sandbox the process on which it is at work: its memory is on its way through
// a pipe that nobody reads any more (SIGPIPE), and its next instruction is a breakpoint of CRIU's (SIGTRAP).
#define _GNU_SOURCE
#include "criu-children.h"
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

struct maker {
  pid_t pid;
  int signal; // 0: its children do not end with it
};

static int goesOn(void) {
  return getenv("ATOLL_CRIU_GOES_ON") != NULL;
}

__attribute__((constructor)) static void leaveHelper(void) {
  if (!goesOn()) return;
  signal(SIGPIPE, SIG_IGN); // nobody hears what it complains of
  if (prctl(PR_SET_PDEATHSIG, 0) < 0) abort();
}

static struct maker ask(void) {
  struct maker maker = {getpid(), goesOn() ? SIGKILL : 0};
  if (maker.signal) return maker;
  if (!getenv("ATOLL_CHILDREN_END") || prctl(PR_GET_PDEATHSIG, &maker.signal) < 0) maker.signal = 0;
  return maker;
}

static void endWith(struct maker maker) {
  if (!maker.signal) return;
  if (prctl(PR_SET_PDEATHSIG, maker.signal) < 0) abort();
  if (getppid() != maker.pid) raise(maker.signal);
}

pid_t fork(void) {
  static pid_t (*next)(void);
  if (!next) next = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
  struct maker maker = ask();
  pid_t pid = next();
  if (pid == 0) endWith(maker);
  return pid;
}

struct tied {
  struct maker maker;
  int (*run)(void *);
  void *argument;
};

static int runTied(void *argument) {
  struct tied *tied = argument;
  endWith(tied->maker);
  return tied->run(tied->argument);
}

int cloneTied(cloneCall next, int (*run)(void *), void *stack, int flags, void *argument) {
  struct tied tied = {ask(), run, argument};
  return next(runTied, stack, flags, &tied);
}
