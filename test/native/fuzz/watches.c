// The kernel's report of a sandbox's inotify watches. Its file handles are of files that the sandbox chose.
#include "fuzz.h"
#define dprintf quietly
#include "../../../native/snapshot-watches.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char line[512], path[PATH_MAX], *layers[] = {"/nonexistent", NULL};
  if (size >= sizeof line) return 0;
  memcpy(line, data, size), line[size] = 0;
  watchCount = 0, rootDevice = 0x2a;
  addWatch(1, 3, line);
  must(watchCount <= 1);
  for (int i = 0; i < watchCount; i++) {
    must(watches[i].length <= handleBytesMax);
    resolve(&watches[i], "/nonexistent", layers, path);
  }
  return 0;
}
