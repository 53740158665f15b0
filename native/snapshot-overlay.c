// The mounts of a sandbox that is about to be restored: its root file system and its volumes, made before its
// processes.
#define _GNU_SOURCE
#include "helper.h"
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { idsPerSandbox = 65536 };

static int writeMap(pid_t pid, const char *file, uint32_t base) {
  char path[64], map[64];
  snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
  int length = snprintf(map, sizeof map, "0 %u %d\n", base, idsPerSandbox);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  int result = write(fd, map, length) == length ? 0 : -1, error = errno;
  close(fd);
  return errno = error, result;
}

// Makes a user namespace with the sandbox's mapping. It lives while it is open: mounts that it has mapped stay mapped.
static int makeUserNamespace(uint32_t base) {
  int ready[2], fd = -1, error = 0;
  char path[64], byte = 0;
  if (pipe2(ready, O_CLOEXEC) < 0) return -1;
  pid_t helper = getpid(), pid = fork();
  if (pid == 0) {
    // Ends this process too if the helper is killed: it holds a copy of the channel, so the platform would not notice
    // the end of the helper.
    if (unshare(CLONE_NEWUSER) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != helper || write(ready[1], &byte, 1) < 0) _exit(1);
    for (;;) pause();
  }
  error = errno;
  close(ready[1]);
  if (pid > 0) {
    snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
    if (read(ready[0], &byte, 1) == 1 && writeMap(pid, "uid_map", base) == 0 && writeMap(pid, "gid_map", base) == 0) fd = open(path, O_RDONLY | O_CLOEXEC);
    error = errno;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
  }
  close(ready[0]);
  return errno = error, fd;
}

// overlay-mount base target disk layers layer...: mounts a sandbox's root at `target`, owners shifted to `base`.
int opOverlayMount(struct request *r, struct failure *f) {
  uint32_t base = strtoul(r->argument[0], NULL, 10);
  int layers = atoi(r->argument[3]);
  if (layers != r->arguments - 4) return errno = EINVAL, fail(f, "layers");
  int namespace = makeUserNamespace(base);
  if (namespace < 0) return fail(f, "user namespace");
  int overlay = makeOverlay(r->argument + 4, layers, r->argument[2], namespace, base, f);
  close(namespace);
  if (overlay < 0) return -1;
  int result = syscall(SYS_move_mount, overlay, "", AT_FDCWD, r->argument[1], MOVE_MOUNT_F_EMPTY_PATH) < 0 ? fail(f, r->argument[1]) : 0;
  close(overlay);
  return result;
}

// mapped-mount base source target: shows a directory at `target`, with owners shifted to `base`.
int opMappedMount(struct request *r, struct failure *f) {
  int namespace = makeUserNamespace(strtoul(r->argument[0], NULL, 10));
  if (namespace < 0) return fail(f, "user namespace");
  int tree = openIdmapped(r->argument[1], namespace, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID), error = errno;
  close(namespace);
  if (tree < 0) return errno = error, fail(f, r->argument[1]);
  int result = syscall(SYS_move_mount, tree, "", AT_FDCWD, r->argument[2], MOVE_MOUNT_F_EMPTY_PATH) < 0 ? fail(f, r->argument[2]) : 0;
  close(tree);
  return result;
}

static uint64_t attributesOf(const char *flags) {
  static const struct { const char *name; uint64_t attribute; } known[] = {
      {"ro", MOUNT_ATTR_RDONLY}, {"nosuid", MOUNT_ATTR_NOSUID}, {"nodev", MOUNT_ATTR_NODEV}, {"noexec", MOUNT_ATTR_NOEXEC}};
  uint64_t attributes = 0;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strstr(flags, known[i].name)) attributes |= known[i].attribute;
  return attributes;
}

static int restrictMount(int root, const char *flags, const char *point) {
  struct open_how how = {.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS};
  struct mount_attr attributes = {.attr_set = attributesOf(flags)};
  int fd = syscall(SYS_openat2, root, point, &how, sizeof how);
  if (fd < 0) return -1;
  int result = syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attributes, sizeof attributes), error = errno;
  close(fd);
  return errno = error, result;
}

// restrict pid [flags point]...: restricts mounts of a sandbox that was restored and does not run yet. `flags`: out of
// ro, nosuid, nodev and noexec, separated by commas.
int opRestrict(struct request *r, struct failure *f) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/ns/mnt", r->argument[0]);
  int mounts = open(path, O_RDONLY | O_CLOEXEC);
  snprintf(path, sizeof path, "/proc/%s/root", r->argument[0]);
  int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC), result = -1;
  if (mounts < 0 || root < 0 || own < 0) fail(f, "namespaces");
  else if (setns(mounts, CLONE_NEWNS) < 0) fail(f, "setns");
  else {
    result = 0;
    for (char **pair = r->argument + 1; result == 0 && pair[0] && pair[1]; pair += 2)
      if (restrictMount(root, pair[0], pair[1]) < 0) result = fail(f, pair[1]);
    if (setns(own, CLONE_NEWNS) < 0) exit(3); // never go on in a stranger's namespace
  }
  if (mounts >= 0) close(mounts);
  if (root >= 0) close(root);
  if (own >= 0) close(own);
  return result;
}
