// Loaded with native/criu-children.c: forks as CRIU does when it tests the kernel, prints its children, and is killed.
#define _GNU_SOURCE
#include "../../native/criu-children.h"
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static int sleepOn(void *unused) {
  (void)unused;
  close(1), close(2); // the reader waits for every process that has it
  sleep(1000);
  return 0;
}

int main(void) {
  static char stack[1 << 16];
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) abort();
  pid_t forked = fork();
  if (forked == 0) return sleepOn(NULL);
  printf("%d %d\n", forked, cloneTied(clone, sleepOn, stack + sizeof stack, CLONE_UNTRACED | SIGCHLD, NULL));
  fflush(stdout);
  raise(SIGKILL);
}
