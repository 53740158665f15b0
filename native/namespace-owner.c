// Preloaded into crun and CRIU, which make a sandbox's user namespace as the host's root. The kernel counts what the
// processes of a user namespace hold (inotify watches, message queues, pending signals and the like) for the
// namespace's maker too, so all sandboxes, and root on the host, would share one account. This library makes the
// namespace as the user of ATOLL_NAMESPACE_OWNER, for the length of that call. Other calls pass unchanged.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "criu-children.h"
#include "groups.h"
#include "memory-later.h"

typedef long (*systemCall)(long, ...);

static long kernel(long number, long a, long b, long c, long d, long e, long f) {
  static systemCall next;
  if (!next) next = (systemCall)dlsym(RTLD_NEXT, "syscall");
  return next(number, a, b, c, d, e, f);
}

// Changes the effective user and keeps all capabilities. Changing it takes a process's own /proc files from the
// process, and a copy of the process would inherit that.
static int act(long user) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2];
  if (kernel(SYS_setresuid, -1, user, -1, 0, 0, 0) < 0 || kernel(SYS_capget, (long)&header, (long)data, 0, 0, 0, 0) < 0) return -1;
  data[0].effective = data[0].permitted, data[1].effective = data[1].permitted;
  if (kernel(SYS_capset, (long)&header, (long)data, 0, 0, 0, 0) < 0) return -1;
  return kernel(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0, 0);
}

static const int first = -20;

static void goAt(int niceness) {
  int error = errno;
  if (setpriority(PRIO_PROCESS, 0, niceness) < 0) errno = error; // it keeps its priority then
}

// crun and CRIU start a sandbox's init, and through it the agent. Both go before everything else in the sandbox:
// init.c sets the niceness of each command. The niceness counts only within the sandbox's control group; a restoring
// CRIU is outside of it, so only what it makes there goes first.
__attribute__((constructor)) static void goFirst(void) {
  if (!getenv("ATOLL_GROUPS")) goAt(first);
}

static long owner(void) {
  const char *text = getenv("ATOLL_NAMESPACE_OWNER");
  return text ? atol(text) : 0;
}

// With each change of users the kernel clears the signal that a process gets when its parent ends. The parent is the
// helper: without the signal nobody would end this process after it.
static struct { int signal; pid_t parent; } death;

// A namespace made as the wrong user must not pass for the owner's, so a failure here aborts.
static void begin(void) {
  death.parent = getppid();
  if (kernel(SYS_prctl, PR_GET_PDEATHSIG, (long)&death.signal, 0, 0, 0, 0) < 0 || (owner() && act(owner()) < 0)) abort();
}

static long end(long result) {
  int error = errno;
  if ((owner() && act(0) < 0) || kernel(SYS_prctl, PR_SET_PDEATHSIG, death.signal, 0, 0, 0, 0) < 0) abort();
  if (death.signal && getppid() != death.parent) raise(death.signal);
  errno = error;
  return result;
}

static int makesOne(long number, long a) {
  if (number == SYS_clone || number == SYS_unshare) return (a & CLONE_NEWUSER) != 0;
  return number == SYS_clone3 && (((struct clone_args *)a)->flags & CLONE_NEWUSER);
}

// Uptime and the ages of processes count from the sandbox's start: the process that crun forks after making the other
// namespaces is born in a time namespace whose boot clock begins now (time_namespaces(7)). That namespace belongs to
// the sandbox's user namespace, as CRIU expects; in a restore, CRIU brings its own. If the kernel refuses, the sandbox
// has the host's clock.
static void startClock(void) {
  struct timespec now;
  char text[64];
  int dumpable = (int)kernel(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0, 0), error = errno;
  if (kernel(SYS_clock_gettime, CLOCK_BOOTTIME, (long)&now, 0, 0, 0, 0) == 0 && kernel(SYS_unshare, CLONE_NEWTIME, 0, 0, 0, 0, 0) == 0) {
    kernel(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0, 0); // opens the process's own /proc files, see above
    int fd = (int)kernel(SYS_openat, AT_FDCWD, (long)"/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC, 0, 0, 0);
    int length = snprintf(text, sizeof text, "boottime %ld 0\n", -(long)now.tv_sec);
    if (fd >= 0 && write(fd, text, length) == length) error = 0;
    if (fd >= 0) close(fd);
    kernel(SYS_prctl, PR_SET_DUMPABLE, dumpable, 0, 0, 0, 0);
  }
  errno = error;
}

static int completesSandbox(long number, long flags) {
  return number == SYS_unshare && (flags & CLONE_NEWPID) && getenv("ATOLL_FRESH_CLOCK");
}

// Before CRIU dumps a network namespace, it mounts a sysfs for it. It looks at nothing there if the namespace is
// dumped empty, but mounting and unmounting would each wait for the kernel. So it gets descriptors of another file.
static int standsForSysfs = -1;

static int openStandIn(void) {
  return (int)kernel(SYS_openat, AT_FDCWD, (long)"/dev/null", O_WRONLY | O_CLOEXEC, 0, 0, 0); // reads of messages fail
}

static int mountsSysfs(long number, long a, long b) {
  if (!getenv("ATOLL_CRIU_SOCKET")) return 0; // not CRIU
  if (number == SYS_fsopen) return a && b == 0 && !strcmp((const char *)a, "sysfs");
  return standsForSysfs >= 0 && a == standsForSysfs && (number == SYS_fsconfig || number == SYS_fsmount);
}

static long standIn(long number) {
  if (number == SYS_fsopen) return standsForSysfs = openStandIn();
  if (number == SYS_fsconfig) return 0;
  standsForSysfs = -1;
  return openStandIn();
}

// The first process of a sandbox that CRIU restores is born in the sandbox's control groups, where their namespace
// begins. CRIU itself is in none of them: it does not freeze with the sandbox.
static int belongs(struct groups *groups) {
  return enterGroups(groups) < 0 || kernel(SYS_unshare, CLONE_NEWCGROUP, 0, 0, 0, 0, 0) < 0 ? -1 : 0;
}

static long cloneRestored(const struct clone_args *given, size_t size) {
  struct groups groups;
  struct clone_args arguments = {0};
  memcpy(&arguments, given, size < sizeof arguments ? size : sizeof arguments);
  if (openGroups(&groups, getenv("ATOLL_GROUPS")) < 0) return -1;
  bearIn(&groups, &arguments);
  int niceness = getpriority(PRIO_PROCESS, 0);
  goAt(first);
  begin();
  long result = kernel(SYS_clone3, (long)&arguments, sizeof arguments, 0, 0, 0, 0);
  if (groups.directory >= 0 && result >= 0) closeGroups(&groups);
  // CRIU may run in a container that forbids this call.
  else if (groups.directory >= 0) result = kernel(SYS_clone3, (long)given, size, 0, 0, 0, 0);
  if (result != 0) return goAt(niceness), closeGroups(&groups), end(result);
  if (belongs(&groups) < 0) abort();
  return 0;
}

static int restoresSandbox(uint64_t flags) {
  return (flags & CLONE_NEWUSER) && (flags & CLONE_NEWPID) && getenv("ATOLL_GROUPS");
}

long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long argument[6];
  for (int i = 0; i < 6; i++) argument[i] = va_arg(list, long);
  va_end(list);
  if (mountsSysfs(number, argument[0], argument[1])) return standIn(number);
  if (number == SYS_clone3 && restoresSandbox(((struct clone_args *)argument[0])->flags)) return cloneRestored((struct clone_args *)argument[0], argument[1]);
  int counts = makesOne(number, argument[0]);
  if (counts) begin();
  long result = kernel(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
  // A process in the new namespace can't change back: no user is mapped there yet.
  if (counts && result != 0) return end(result);
  if (result == 0 && completesSandbox(number, argument[0])) startClock();
  if (number == SYS_userfaultfd && result < 0 && errno == EPERM) return openFaults(argument[0]);
  if (number != SYS_prlimit64 || result == 0 || errno != EPERM || !owner()) return result;
  // Reading the limits of a process in the namespace takes CAP_SYS_RESOURCE there. Its owner has that capability; root
  // of a host in a container may not.
  begin();
  return end(kernel(number, argument[0], argument[1], argument[2], argument[3], 0, 0));
}

int unshare(int flags) {
  return (int)syscall(SYS_unshare, (long)flags, 0L, 0L, 0L, 0L, 0L);
}

// Used where there is no clone3.
struct restored {
  int (*run)(void *);
  void *argument;
  struct groups groups;
};

static int runRestored(void *argument) {
  struct restored *restored = argument;
  if (belongs(&restored->groups) < 0) abort();
  return restored->run(restored->argument);
}

int clone(int (*run)(void *), void *stack, int flags, void *argument, ...) {
  va_list list;
  va_start(list, argument);
  void *parent = va_arg(list, void *), *tls = va_arg(list, void *), *child = va_arg(list, void *);
  va_end(list);
  cloneCall next = (cloneCall)dlsym(RTLD_NEXT, "clone");
  if (flags == (CLONE_UNTRACED | SIGCHLD)) return cloneTied(next, run, stack, flags, argument);
  if (!(flags & CLONE_NEWUSER)) return next(run, stack, flags, argument, parent, tls, child);
  struct restored restored = {run, argument, {.directory = -1}};
  int isRestored = restoresSandbox(flags);
  if (isRestored && openGroups(&restored.groups, getenv("ATOLL_GROUPS")) < 0) return -1;
  int niceness = getpriority(PRIO_PROCESS, 0);
  if (isRestored) goAt(first);
  begin();
  int pid = isRestored ? next(runRestored, stack, flags, &restored, parent, tls, child) : next(run, stack, flags, argument, parent, tls, child);
  if (isRestored) goAt(niceness);
  closeGroups(&restored.groups);
  return (int)end(pid);
}

// Before a dump, CRIU enters the user namespace of a sandbox and opens its other namespaces from there. The kernel
// refuses that for a sandbox that CRIU has restored: a process that is not dumpable, like init, opens its /proc files
// only to processes that may trace in the namespace where its memory was made, and CRIU made it on the host. So this
// library opens the others together with the user namespace, while CRIU still may.
static const char *const others[] = {"ns/net", "ns/uts", "ns/ipc", "ns/pid", "ns/mnt", "ns/cgroup", "ns/time"};
enum { othersCount = sizeof others / sizeof *others };
static struct { int from, fd[othersCount]; } opened = {.from = -1};

static int openRaw(int directory, const char *path, int flags, int mode) {
  return (int)kernel(SYS_openat, directory, (long)path, flags, mode, 0, 0);
}

static void openOthers(int directory) {
  for (int i = 0; i < othersCount; i++) {
    if (opened.from >= 0 && opened.fd[i] >= 0) close(opened.fd[i]);
    opened.fd[i] = openRaw(directory, others[i], O_RDONLY | O_CLOEXEC, 0);
  }
  opened.from = directory;
}

static int openedBefore(int directory, const char *path) {
  if (opened.from < 0 || opened.from != directory) return -1;
  for (int i = 0; i < othersCount; i++)
    if (!strcmp(path, others[i]) && opened.fd[i] >= 0) return fcntl(opened.fd[i], F_DUPFD_CLOEXEC, 0);
  return -1;
}

int openat64(int directory, const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  int mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, int) : 0;
  va_end(list);
  int fd = openRaw(directory, path, flags, mode);
  if (strncmp(path, "ns/", 3)) return fd;
  int error = errno;
  if (fd >= 0 && !strcmp(path, "ns/user")) openOthers(directory);
  else if (fd < 0 && error == EACCES) fd = openedBefore(directory, path);
  errno = error;
  return fd;
}
