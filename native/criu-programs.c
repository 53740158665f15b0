// Preloaded into CRIU beside namespace-owner.c. CRIU forks a process for each program that it starts; this library
// does the program's work in that process. Starting the program would take several times as long as its work.
//
// The action script is how CRIU tells the platform which stage it has reached: no script of that name is ever run.
// Most file systems in memory hold next to nothing and need no tar (criu-tar.c).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include "criu-tar.h"

enum { answerTimeoutS = 600 }; // copying a disk may be part of the answer

static int complain(const char *what) {
  dprintf(2, "%s: %s\n", what, strerror(errno));
  return 1;
}

static int writeSetting(const char *file, const char *value) {
  int fd = open(file, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  int result = write(fd, value, strlen(value)) < 0 ? -1 : 0, error = errno;
  close(fd);
  return errno = error, result;
}

// The network namespace is new: it needs the settings that the runtime makes in new sandboxes
// (src/node/drivers/crun/config.ts).
static int setUpNetwork(const char *pid) {
  char path[64], range[64];
  uint32_t base = 0;
  snprintf(path, sizeof path, "/proc/%s/gid_map", pid);
  FILE *map = fopen(path, "re");
  if (!map || fscanf(map, "%*u %u", &base) != 1) return -1;
  fclose(map);
  snprintf(path, sizeof path, "/proc/%s/ns/net", pid);
  int namespace = open(path, O_RDONLY | O_CLOEXEC);
  if (namespace < 0 || setns(namespace, CLONE_NEWNET) < 0) return -1;
  close(namespace);
  snprintf(range, sizeof range, "%u %u", base, base + 65535);
  if (writeSetting("/proc/sys/net/ipv4/ping_group_range", range) < 0) return -1;
  if (writeSetting("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0") < 0) return -1;
  return writeSetting("/proc/sys/net/mptcp/enabled", "0") < 0 && errno != ENOENT ? -1 : 0;
}

// Tells the platform which stage CRIU has reached and waits for its decision. A lost platform means no: the dump is
// undone, and its sandbox runs on. The platform hears of a restore's last stage only if it asked to.
static int reportStage(const char *stage) {
  const char *path = getenv("ATOLL_CRIU_SOCKET"), *pid = getenv("CRTOOLS_INIT_PID");
  int isLast = !strcmp(stage, "pre-resume") && getenv("ATOLL_CRIU_PRE_RESUME");
  if (strcmp(stage, "setup-namespaces") && strcmp(stage, "post-restore") && strcmp(stage, "post-dump") && !isLast) return 0;
  if (!path) return dprintf(2, "no socket to report to\n"), 1;
  if (!strcmp(stage, "setup-namespaces") && pid && setUpNetwork(pid) < 0) return complain("network settings");
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) return complain(path);
  struct timeval patience = {.tv_sec = answerTimeoutS};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  dprintf(fd, "%s %s\n", stage, pid ? pid : "0");
  char answer = 0;
  while (read(fd, &answer, 1) < 0)
    if (errno != EINTR) return complain("no answer");
  return answer == 'y' ? 0 : 1;
}

int execvp(const char *program, char *const argument[]) {
  static int (*next)(const char *, char *const[]);
  if (!next) next = (int (*)(const char *, char *const[]))dlsym(RTLD_NEXT, "execvp");
  if (!getenv("ATOLL_CRIU_SOCKET")) return next(program, argument); // not CRIU
  const char *stage = getenv("CRTOOLS_SCRIPT_ACTION");
  if (stage) _exit(reportStage(stage));
  if (!strcmp(program, "tar")) {
    int status = tarInPlace(argument);
    if (status >= 0) _exit(status);
  }
  return next(program, argument);
}
