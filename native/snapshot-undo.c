// Leftovers of a killed dump in a sandbox: packet rules that let nothing through, and TCP connections that send
// nothing. The kernel lets the processes go by itself when their tracer ends.
#define _GNU_SOURCE
#include "helper.h"
#include <dirent.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef TCP_REPAIR_OFF
#define TCP_REPAIR_OFF 0
#endif

static int complainOf(const char *what) {
  dprintf(2, "%s: %s\n", what, strerror(errno));
  return 1;
}

// Source: net/ipv4/tcp.c of Linux: while TCP_REPAIR is set, a socket neither sends nor acknowledges.
static void endRepair(int fd) {
  int repair = 0, off = TCP_REPAIR_OFF;
  socklen_t length = sizeof repair;
  if (getsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &repair, &length) < 0 || !repair) return;
  if (setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &off, sizeof off) < 0) perror("TCP_REPAIR");
}

// Looks at every socket of a process. A process that ends meanwhile has none.
static void endRepairsOf(pid_t pid) {
  char path[64], target[32];
  snprintf(path, sizeof path, "/proc/%d/fd", pid);
  int pidfd = syscall(SYS_pidfd_open, pid, 0);
  DIR *descriptors = pidfd < 0 ? NULL : opendir(path);
  for (struct dirent *entry; descriptors && (entry = readdir(descriptors));) {
    ssize_t length = readlinkat(dirfd(descriptors), entry->d_name, target, sizeof target - 1);
    if (length < 8 || strncmp(target, "socket:[", 8)) continue;
    int fd = syscall(SYS_pidfd_getfd, pidfd, atoi(entry->d_name), 0);
    if (fd < 0) continue;
    endRepair(fd);
    close(fd);
  }
  if (descriptors) closedir(descriptors);
  if (pidfd >= 0) close(pidfd);
}

// CRIU adds rules that let no packet through while a sandbox is dumped. It has no other rules.
int removePacketRules(void) {
  struct {
    struct nlmsghdr header;
    struct nfgenmsg body;
  } request[3] = {
      {{sizeof *request, NFNL_MSG_BATCH_BEGIN, NLM_F_REQUEST, 0, 0}, {.res_id = htons(NFNL_SUBSYS_NFTABLES)}},
      {{sizeof *request, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELTABLE, NLM_F_REQUEST | NLM_F_ACK, 1, 0}, {.nfgen_family = AF_UNSPEC}},
      {{sizeof *request, NFNL_MSG_BATCH_END, NLM_F_REQUEST, 2, 0}, {.res_id = htons(NFNL_SUBSYS_NFTABLES)}},
  };
  char answer[4096];
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
  int result = fd < 0 || send(fd, request, sizeof request, 0) < 0 || recv(fd, answer, sizeof answer, 0) < 0 ? -1 : 0;
  if (fd >= 0) close(fd);
  return result;
}

// What undo-dump answers if the first process has ended, or is about to: its network is already gone.
enum { sandboxEnded = 3 };

// `file` holds the sandbox's processes, one a line.
int undoDump(const char *pid, const char *file) {
  char path[64], line[32];
  snprintf(path, sizeof path, "/proc/%s/ns/net", pid);
  FILE *processes = fopen(file, "re");
  if (!processes) return complainOf(file);
  while (fgets(line, sizeof line, processes)) endRepairsOf(atoi(line));
  fclose(processes);
  int namespace = open(path, O_RDONLY | O_CLOEXEC);
  if (namespace < 0 && (errno == ENOENT || errno == ESRCH)) return sandboxEnded;
  if (namespace < 0 || setns(namespace, CLONE_NEWNET) < 0) return complainOf(path);
  return removePacketRules() < 0 ? complainOf("nftables") : 0;
}
