// killed-tracer PID before|after: leaves a process as CRIU does when killed in the middle of a dump. It stops the
// process, writes a system call and a breakpoint to the start of its code, and sets its registers to run them; then it
// is killed, before or after the process has run them.
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static void require(int holds, const char *what) {
  if (holds) return;
  perror(what);
  exit(1);
}

static unsigned long codeOf(pid_t pid) {
  char path[64], line[512], rights[8];
  unsigned long begin = 0;
  snprintf(path, sizeof path, "/proc/%d/maps", pid);
  FILE *maps = fopen(path, "re");
  require(maps != NULL, path);
  while (fgets(line, sizeof line, maps))
    if (sscanf(line, "%lx-%*x %7s", &begin, rights) == 2 && rights[2] == 'x') break;
  fclose(maps);
  return begin;
}

int main(int count, char **argv) {
  require(count == 3, "killed-tracer PID before|after");
  pid_t pid = atoi(argv[1]);
  int status;
  unsigned long code = codeOf(pid);
  struct user_regs_struct registers;
  struct iovec area = { &registers, sizeof registers };
  require(ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0, "seize");
  require(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) == 0 && waitpid(pid, &status, 0) == pid && WIFSTOPPED(status), "stop");
  require(ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &area) == 0, "registers");
#if defined(__x86_64__)
  unsigned long text = 0xcccccccccccc050f; // syscall; int3
  registers.orig_rax = -1;
  registers.rax = SYS_getpid;
  registers.rbx = registers.rcx = registers.rdx = registers.rbp = registers.r12 = registers.r13 = registers.r14 = registers.r15 = 0xbad;
  registers.rip = code;
#elif defined(__aarch64__)
  unsigned long text = 0xd4200000d4000001; // svc #0; brk #0
  for (int i = 0; i < 31; i++) registers.regs[i] = 0xbad;
  registers.regs[8] = SYS_getpid;
  registers.pc = code;
#endif
  require(ptrace(PTRACE_POKEDATA, pid, code, text) == 0, "code");
  require(ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &area) == 0, "registers");
  if (!strcmp(argv[2], "after")) {
    require(ptrace(PTRACE_CONT, pid, NULL, NULL) == 0, "continue");
    require(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP, "breakpoint");
  }
  raise(SIGKILL);
}
