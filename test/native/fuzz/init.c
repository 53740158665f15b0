// What init is told: the control token by its standard input, groups by its arguments.
#include "fuzz.h"

static int noGroups(size_t count, const gid_t *groups) { return groups ? must(count <= 65536), 0 : -1; }

#define setgroups noGroups
#define main initMain
#include "../../../native/init.c"
#undef main

int serveRelay(const char *address, int port, const char *own) { return address && port && own; }
int removeTree(int parent, const char *name) { return parent && name; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char token[tokenBytesMax];
  int pipes[2];
  must(pipe(pipes) == 0);
  if (size > 32 << 10) size = 32 << 10;
  must(write(pipes[1], data, size) == (ssize_t)size);
  close(pipes[1]);
  must(dup2(pipes[0], 0) == 0 && close(pipes[0]) == 0);
  size_t length = readToken(token);
  must(length < tokenBytesMax && !memchr(token, '\n', length) && (length == 0 || !memcmp(token, data, length)));
  char *list = malloc(size + 1);
  memcpy(list, data, size), list[size] = 0;
  setGroups(list);
  free(list);
  return 0;
}
