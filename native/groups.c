// Moving another process between control groups makes the kernel hold up every fork and every end of a process on the
// whole machine until those under way are done (cgroup_threadgroup_rwsem): a sandbox full of forks, which gets little
// processor time, then keeps everybody waiting for half a minute and longer. A process that is born in its group
// (version 2), or that moves itself while it has a single thread (version 1), holds up nobody.
#define _GNU_SOURCE
#include "groups.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void closeGroups(struct groups *groups) {
  while (groups->count > 0) close(groups->fd[--groups->count]);
  if (groups->directory >= 0) close(groups->directory);
  groups->directory = -1;
}

static int openGroup(struct groups *groups, const char *path) {
  int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return -1;
  int fd = openat(directory, "tasks", O_WRONLY | O_CLOEXEC), isUnified = fd < 0 && errno == ENOENT;
  if (isUnified) fd = openat(directory, "cgroup.procs", O_WRONLY | O_CLOEXEC);
  int error = errno;
  if (fd >= 0 && isUnified && groups->directory < 0) groups->directory = directory;
  else close(directory);
  if (fd >= 0) groups->fd[groups->count++] = fd;
  return errno = error, fd < 0 ? -1 : 0;
}

int openGroups(struct groups *groups, const char *directories) {
  char path[PATH_MAX];
  *groups = (struct groups){.directory = -1};
  for (const char *at = directories ? directories : ""; *at; at += strspn(at, " ")) {
    size_t length = strcspn(at, " ");
    int result = -1;
    if (groups->count == groupsMax || length >= sizeof path) errno = E2BIG;
    else {
      memcpy(path, at, length);
      path[length] = 0;
      result = openGroup(groups, path);
    }
    int error = errno;
    if (result < 0) return closeGroups(groups), errno = error, -1;
    at += length;
  }
  return 0;
}

void bearIn(const struct groups *groups, struct clone_args *arguments) {
  if (groups->directory < 0) return;
  arguments->flags |= CLONE_INTO_CGROUP;
  arguments->cgroup = groups->directory;
}

pid_t forkInto(struct groups *groups) {
  struct clone_args arguments = {.exit_signal = SIGCHLD};
  bearIn(groups, &arguments);
  pid_t pid = groups->directory < 0 ? -1 : syscall(SYS_clone3, &arguments, sizeof arguments);
  int isThere = pid >= 0, error = 0;
  // The helper may run in a container that forbids this call.
  if (!isThere) pid = fork(), error = errno;
  if (isThere || pid != 0) closeGroups(groups);
  return errno = error, pid;
}

int enterGroups(struct groups *groups) {
  int result = 0, error = 0;
  for (int i = 0; i < groups->count; i++)
    if (write(groups->fd[i], "0", 1) != 1) result = -1, error = errno;
  closeGroups(groups);
  return errno = error, result;
}
