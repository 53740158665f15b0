// The checksums of a snapshot's files: they may be damaged, as anything on a disk.
#include "fuzz.h"
#define dprintf quietly
#include "../../../native/snapshot-seal.c"

static char directory[] = "/tmp/atoll-fuzz-XXXXXX";

static void tidy(void) {
  char path[64];
  for (const char *const *name = (const char *const[]){"checksums", "a", NULL}; *name; name++) snprintf(path, sizeof path, "%s/%s", directory, *name), unlink(path);
  rmdir(directory);
}

static void put(const char *name, const void *data, size_t size) {
  char path[64];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  must(fd >= 0 && write(fd, data, size) == (ssize_t)size && close(fd) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static int ready;
  if (!ready++) must(mkdtemp(directory) && atexit(tidy) == 0), put("a", "content", 7);
  put("checksums", data, size);
  verifyDirectory(directory, NULL);
  return 0;
}
