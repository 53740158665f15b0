// The checksums of a snapshot's files: they may be damaged, like anything on a disk.
#include "fuzz.h"
#define dprintf quietly
#include "../../../native/snapshot-seal.c"

static char directory[] = "/tmp/atoll-fuzz-XXXXXX";

static void tidy(void) {
  char path[64];
  for (const char *const *name = (const char *const[]){"checksums", "memory-sums", "a", NULL}; *name; name++) snprintf(path, sizeof path, "%s/%s", directory, *name), unlink(path);
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
  static uint8_t piece[pieceBytes];
  put("memory-sums", data, size);
  int folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC), a = openat(folder, "a", O_RDONLY | O_CLOEXEC);
  struct sums *all = readSums(folder);
  for (const struct sums *s = all; s; s = s->next)
    for (uint64_t number = 0; number < 3; number++) must(readPiece(s, a, number, piece) <= 7);
  freeSums(all);
  close(a), close(folder);
  return 0;
}
