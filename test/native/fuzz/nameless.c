// The kernel's list of what a process has mapped. Its paths are those of files that the sandbox made.
#include "fuzz.h"
#define dprintf quietly
#include "../../../native/snapshot-nameless.c"
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static int runs;
  // What was seen stays known, and its room is for one look at a sandbox.
  if (runs++ % 16 == 0) memset(known, 0, sizeof known);
  int maps = memfd_create("maps", MFD_CLOEXEC);
  must(maps >= 0 && write(maps, data, size) == (ssize_t)size && lseek(maps, 0, SEEK_SET) == 0);
  looksLeft = 1000, bytesLeft = 1 << 20;
  lookAtLines(maps, -1, 2);
  close(maps);
  must(looksLeft >= -1 && bytesLeft <= 1 << 20);
  must(diskBytes == 0 && memoryBytes == 0); // no link leads anywhere
  return 0;
}
