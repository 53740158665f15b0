// Small programs around CRIU: the helper's binary started with other arguments.
//
//   helper with-faults program argument...              starts a program that restores memory later, see below
//   helper without-network-settings program argument...  starts a program that finds no network settings, see below
//   helper cut PID                                      ends every TCP connection in a sandbox's network, telling the peers
//   helper undo-dump PID PROCESSFILE                     see snapshot-undo.c
//   helper watch-paths PID GROUPFILE IMAGE DISK LAYER...  see snapshot-watches.c
//   helper look-for-nameless LOOKS BYTES                 see snapshot-nameless.c
//   helper learn-kernel DIRECTORY program argument...   lets CRIU remember what the kernel can do, see below
//   helper seal|checksum|flush|verify DIRECTORY         see snapshot-seal.c
//   helper follow DIRECTORY [write-out]                 see snapshot-follow.c
//   helper bring-later|verify-now|wait-later FILE       see snapshot-later.c
//   helper end-later FILE DIRECTORY                     see snapshot-later.c
//   helper remove-beneath ROOT PATH                     see volume.c
//
// The tar that CRIU starts finds this program as `gzip`, which then compresses nothing.
#define _GNU_SOURCE
#include "helper.h"
#include "gzip.h"
#include "memory-later.h"
#include "netlink.h"
#include <linux/inet_diag.h>
#include <linux/magic.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>

static int complain(const char *what) {
  dprintf(2, "%s: %s\n", what, strerror(errno));
  return 1;
}

// ---- with-faults

// For a restore whose memory comes later. The control group of a sandbox may open no device, so the program inherits
// this one open. And putting back one page must not bring the pages beside it, as huge pages would: so they are off.
// In the end CRIU gives each process back its own setting.
static int openFaultsDevice(void) {
  if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) < 0) return -1;
  int fd = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
  if (fd < 0 || dup2(fd, faultsDevice) < 0) return -1;
  return close(fd);
}

static int withFaults(char **argument) {
  if (openFaultsDevice() < 0) return complain("/dev/userfaultfd");
  execvp(argument[0], argument);
  return complain(argument[0]);
}

// ---- without-network-settings

// runsc takes a network namespace for the host's own if it has /proc/sys/net/core/rmem_default; before Linux 6.17 only
// the host's own has it.
static int withoutNetworkSettings(char **argument) {
  if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) return complain("mount namespace");
  if (mount("none", "/proc/sys/net", "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k") < 0) return complain("/proc/sys/net");
  execvp(argument[0], argument);
  return complain(argument[0]);
}

// ---- gzip

static int writeAll(const void *from, size_t size) {
  for (const char *p = from; size > 0;) {
    ssize_t n = write(1, p, size);
    if (n < 0) return complain("write");
    p += n, size -= n;
  }
  return 0;
}

// Writes gzip's format (RFC 1952) with stored blocks (RFC 1951, 3.2.4): compressing is not worth its time for memory
// that soon comes back. Any gzip opens it, and so do earlier releases.
static int gzipAsItIs(void) {
  static const uint8_t header[10] = {0x1f, 0x8b, 8, [9] = 0xff}, last[5] = {1, 0, 0, 0xff, 0xff};
  static uint8_t block[5 + 0xffff];
  uint32_t trailer[2] = {0, 0};
  if (writeAll(header, sizeof header)) return 1;
  for (ssize_t n; (n = read(0, block + 5, sizeof block - 5)) != 0;) {
    if (n < 0) return complain("read");
    uint16_t sizes[2] = {n, ~n};
    memcpy(block + 1, sizes, sizeof sizes);
    trailer[0] = crc32Of(trailer[0], block + 5, n);
    trailer[1] += n;
    if (writeAll(block, 5 + n)) return 1;
  }
  return writeAll(last, sizeof last) || writeAll(trailer, sizeof trailer);
}

// What earlier releases kept is compressed, or not in this format at all: the host's own gzip opens both.
static int gzip(const char *option) {
  if (!option || strcmp(option, "-d")) return gzipAsItIs();
  execl("/usr/bin/gzip", "gzip", "-dcf", NULL);
  execl("/bin/gzip", "gzip", "-dcf", NULL);
  return complain("gzip");
}

// ---- cut

static int destroyConnections(int fd, int family) {
  struct {
    struct nlmsghdr header;
    struct inet_diag_req_v2 body;
  } list = {
      .header = {.nlmsg_len = sizeof list, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
      .body = {.sdiag_family = family, .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~(1u << 6 | 1u << 7 | 1u << 10)}, // not TIME_WAIT, CLOSE, LISTEN
  };
  static struct inet_diag_req_v2 found[65536];
  static char answer[1 << 16] __attribute__((aligned(NLMSG_ALIGNTO)));
  size_t count = 0;
  if (send(fd, &list, sizeof list, 0) < 0) return -1;
  for (int done = 0; !done;) {
    ssize_t n = recv(fd, answer, sizeof answer, 0);
    if (n <= 0) return -1;
    for (struct nlmsghdr *h = (void *)answer; isWholeMessage(h, n); h = NLMSG_NEXT(h, n)) {
      if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR) { done = 1; break; }
      struct inet_diag_msg *m = NLMSG_DATA(h);
      if (h->nlmsg_len >= NLMSG_LENGTH(sizeof *m) && count < sizeof found / sizeof *found)
        found[count++] = (struct inet_diag_req_v2){.sdiag_family = family, .sdiag_protocol = IPPROTO_TCP, .idiag_states = -1, .id = m->id};
    }
  }
  for (size_t i = 0; i < count; i++) {
    struct {
      struct nlmsghdr header;
      struct inet_diag_req_v2 body;
    } destroy = {
        .header = {.nlmsg_len = sizeof destroy, .nlmsg_type = SOCK_DESTROY, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
        .body = found[i],
    };
    // If the kernel has no SOCK_DESTROY, the peers find out by themselves.
    if (send(fd, &destroy, sizeof destroy, 0) < 0 || recv(fd, answer, sizeof answer, 0) < 0) return -1;
  }
  return 0;
}

static int cut(const char *pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/ns/net", pid);
  int namespace = open(path, O_RDONLY | O_CLOEXEC);
  if (namespace < 0 || setns(namespace, CLONE_NEWNET) < 0) return complain(path);
  if (removePacketRules() < 0) return complain("nftables");
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (fd < 0) return complain("sock_diag");
  if (destroyConnections(fd, AF_INET) < 0 || destroyConnections(fd, AF_INET6) < 0) return complain("sock_diag");
  return 0;
}

// ---- learn-kernel

enum { remembersMax = 8 };

// CRIU takes 20 ms to find out what the kernel can do, and remembers it only if /run is in memory. If it is not, CRIU
// gets a file in memory for that, in this mount namespace alone. `argument` is a CRIU that tries everything out.
static int learnKernel(const char *directory, char **argument) {
  const char *remembered = "/run/criu.kdat";
  char made[4096];
  struct statfs s;
  snprintf(made, sizeof made, "%s/criu.kdat", directory);
  if (statfs("/run", &s) < 0) return complain("/run");
  if (s.f_type == TMPFS_MAGIC || (statfs(remembered, &s) == 0 && s.f_type == TMPFS_MAGIC)) return 0;
  if (mount("tmpfs", directory, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=1m,mode=700") < 0) return complain(directory);
  pid_t helper = getpid(), pid = fork();
  if (pid == 0) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != helper) _exit(complain("the end of the helper"));
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount(directory, "/run", NULL, MS_BIND, NULL) < 0) _exit(complain("/run"));
    execvp(argument[0], argument);
    _exit(complain(argument[0]));
  }
  int status = -1;
  if (pid > 0) waitpid(pid, &status, 0);
  if (status) return 1; // it has printed why
  // A CRIU in another namespace takes an empty file for outdated, and removes it. Without the file, each run takes
  // longer.
  int result = -1;
  for (int times = 0; result < 0 && times < remembersMax; times++) {
    int point = open(remembered, O_WRONLY | O_CREAT | O_CLOEXEC, 0600); // to mount on
    if (point >= 0) close(point);
    result = mount(made, remembered, NULL, MS_BIND, NULL);
  }
  if (result < 0) complain(remembered);
  return 0;
}

// ----

int snapshotProgram(int count, char **argument) {
  const char *name = count > 2 ? argument[1] : "";
  const char *slash = strrchr(argument[0], '/');
  if (!strcmp(slash ? slash + 1 : argument[0], "gzip")) return gzip(argument[1]);
  if (!strcmp(name, "with-faults")) return withFaults(argument + 2);
  if (!strcmp(name, "without-network-settings")) return withoutNetworkSettings(argument + 2);
  if (!strcmp(name, "cut")) return cut(argument[2]);
  if (!strcmp(name, "undo-dump") && count > 3) return undoDump(argument[2], argument[3]);
  if (!strcmp(name, "watch-paths") && count > 6) return watchPaths(argument[2], argument[3], argument[4], argument + 5);
  if (!strcmp(name, "look-for-nameless") && count > 3) return lookForNameless(argument[2], argument[3]);
  if (!strcmp(name, "learn-kernel") && count > 3) return learnKernel(argument[2], argument + 3);
  if (!strcmp(name, "bring-later")) return bringLater(argument[2]);
  if (!strcmp(name, "verify-now")) return verifyNow(argument[2]);
  if (!strcmp(name, "wait-later")) return waitForLater(argument[2]);
  if (!strcmp(name, "end-later") && count > 3) return endLater(argument[2], argument[3]);
  if (!strcmp(name, "remove-beneath") && count > 3) return removeBeneath(argument[2], argument[3]);
  if (!strcmp(name, "seal")) return sealDirectory(argument[2], 1);
  if (!strcmp(name, "checksum")) return sealDirectory(argument[2], 0);
  if (!strcmp(name, "follow")) return followDirectory(argument[2], count > 3 && !strcmp(argument[3], "write-out"));
  if (!strcmp(name, "flush")) return flushDirectory(argument[2], argument + 3);
  if (!strcmp(name, "confine") && count > 6) return confine(argument + 2);
  if (!strcmp(name, "verify")) return verifyDirectory(argument[2], argument[3]);
  return -1;
}
