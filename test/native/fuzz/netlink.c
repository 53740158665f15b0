// The kernel's answers over netlink: to the helper's requests, and to the list of a sandbox's connections.
#include "fuzz.h"
#define dprintf quietly
#include "../../../native/link.c"
#define complain complainOfProgram
#include "../../../native/snapshot-program.c"

// No function of the other files is called here.
int fail(struct failure *f, const char *what) { return f->error = what ? errno : 0, -1; }
int watchPaths(const char *a, const char *b, const char *c, char **d) { return a && b && c && d ? 1 : 0; }
int sealDirectory(const char *path, int durable) { return path && durable; }
int followDirectory(const char *path, int writeOut) { return path && writeOut; }
int flushDirectory(const char *path, char **name) { return path && name; }
int bringLater(const char *file) { return file != NULL; }
int verifyNow(const char *file) { return file != NULL; }
int waitForLater(const char *file) { return file != NULL; }
int endLater(const char *file, const char *directory) { return file != directory; }
int verifyDirectory(const char *path, const char *part) { return path != part; }
int removeBeneath(const char *root, const char *path) { return root && path; }
int lookForNameless(const char *looks, const char *bytes) { return looks && bytes; }
int undoDump(const char *a, const char *b) { return a && b; }
int removePacketRules(void) { return 0; }
int confine(char **argument) { return argument != NULL; }
char scratchDirectory[256];
int olderKernel;

// Datagrams, each preceded by its length, from a kernel that then says nothing more.
static int kernelThatSays(const uint8_t *data, size_t size, int *other) {
  int pair[2];
  must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
  for (int left = 8; left > 0 && size > 1; left--) {
    size_t count = data[0] < size - 1 ? data[0] : size - 1;
    if (count && send(pair[1], data + 1, count, MSG_DONTWAIT) < 0) break;
    data += 1 + count, size -= 1 + count;
  }
  shutdown(pair[1], SHUT_WR);
  *other = pair[1];
  return pair[0];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int other, fd = kernelThatSays(data, size, &other);
  readAcknowledgements(fd, 3);
  close(fd), close(other);
  fd = kernelThatSays(data, size, &other);
  destroyConnections(fd, AF_INET);
  close(fd), close(other);
  return 0;
}
