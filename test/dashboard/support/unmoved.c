// Preloaded into the browser, to hide changes of the machine's network from it. Links of sandboxes come and go, and a
// browser that hears of it gives up what it is loading (ERR_NETWORK_CHANGED). Without such a socket, it considers the
// machine always connected.
#define _GNU_SOURCE
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int socket(int domain, int type, int protocol) {
  if (domain == AF_NETLINK) return errno = EAFNOSUPPORT, -1;
  return syscall(SYS_socket, domain, type, protocol);
}
