// Archives that CRIU unpacks: they come from a disk, and once from a sandbox.
#include "fuzz.h"
#define dprintf quietly
#include "../../../native/criu-tar.c"

static char directory[] = "/tmp/atoll-fuzz-XXXXXX";

static void tidy(void) {
  char command[64];
  snprintf(command, sizeof command, "rm -r %s", directory);
  if (system(command)) perror(command);
}

// An input is the entries of an archive, each a byte for its type and a name; the rest of the archive is valid.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static int ready;
  if (!ready++) must(mkdtemp(directory) && atexit(tidy) == 0);
  archived = 0;
  struct stat facts = {.st_mode = 0755};
  while (size > 2) {
    char name[100] = "", link[100] = "";
    size_t length = data[1] % 40 < size - 2 ? data[1] % 40 : size - 2;
    memcpy(name, data + 2, length);
    if (data[0] & 8) strcpy(link, "/tmp");
    if (add(name, &facts, "025x"[data[0] & 3], link) < 0) break;
    data += 2 + length, size -= 2 + length;
  }
  if (isSimple()) {
    int root = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t at = 0; entryAt(at); at += blockBytes) unpackEntry(root, entryAt(at), 0);
    close(root);
  }
  // The same bytes as a packed archive.
  int before = dup(0), file = open(directory, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
  archived = 0;
  must(before >= 0 && file >= 0 && write(file, data, size) == (ssize_t)size && dup2(file, 0) == 0);
  readArchive();
  must(dup2(before, 0) == 0 && close(before) == 0 && close(file) == 0);
  return 0;
}
