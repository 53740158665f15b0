// Loaded into CRIU: kills a process of the sandbox between the call by which CRIU begins to trace it and the next one,
// at the end of a restore. Not the sandbox's first process, which CRIU stops first.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ptrace.h>

long ptrace(enum __ptrace_request request, ...) {
  static long (*next)(enum __ptrace_request, pid_t, void *, void *);
  static pid_t first, killed;
  if (!next) next = (long (*)(enum __ptrace_request, pid_t, void *, void *))dlsym(RTLD_NEXT, "ptrace");
  va_list list;
  va_start(list, request);
  pid_t pid = va_arg(list, pid_t);
  void *address = va_arg(list, void *), *data = va_arg(list, void *);
  va_end(list);
  if (request == PTRACE_INTERRUPT && !first) first = pid;
  if (request == PTRACE_INTERRUPT && pid != first && !killed) kill(killed = pid, SIGKILL);
  return next(request, pid, address, data);
}
