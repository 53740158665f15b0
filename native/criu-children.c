// Preloaded into CRIU beside namespace-owner.c. The kernel ends a restoring CRIU with the helper, by a signal. CRIU's
// own children do not get that signal: a child with which it tries out the kernel would sleep for ever and hold the
// mounts of the helper's namespace. This library ends each such child with its CRIU. CRIU makes the processes of a
// sandbox by other calls, and in processes that have no such signal.
//
// A dumping CRIU outlives the helper: when nobody answers at the end of the dump, it undoes what it has done. Killing
// it in the middle would cost the sandbox the process that it is working on: that process is writing its memory to a
// pipe that nobody reads any more (SIGPIPE), and its next instruction is a breakpoint of CRIU's (SIGTRAP).
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
  signal(SIGPIPE, SIG_IGN); // nobody reads its complaints
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
