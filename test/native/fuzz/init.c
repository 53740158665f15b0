// Init's standard input: the control token.
#include "fuzz.h"

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
  return 0;
}
