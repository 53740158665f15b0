// Preloaded into the browser: it is told of no change of the machine's network. Links of sandboxes come and go, and a
// browser that hears of that gives up what it loads at that moment (ERR_NETWORK_CHANGED). Where there is no such socket
// it takes the machine as always connected.
#define _GNU_SOURCE
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int socket(int domain, int type, int protocol) {
  if (domain == AF_NETLINK) return errno = EAFNOSUPPORT, -1;
  return syscall(SYS_socket, domain, type, protocol);
}
