// standalone RUNS SEED [FILE…]: runs a fuzz target without libFuzzer: files first, then random mutations of them. For
// machines without clang, and for the tests: no coverage guides it, but the sanitizers are active.
#include <stdio.h>
#include <string.h>
#include "fuzz.h"

enum { bytesMax = 4096, filesMax = 256 };

static uint8_t corpus[filesMax][bytesMax];
static size_t lengths[filesMax];
static int count;
static uint32_t state;

static uint32_t below(uint32_t end) {
  state ^= state << 13, state ^= state >> 17, state ^= state << 5;
  return state % end;
}

static size_t mutate(uint8_t *bytes, size_t length) {
  for (int left = 1 + below(6); left > 0; left--) {
    size_t at = below(length + 1), size = 1 + below(16);
    switch (below(5)) {
      case 0: if (at < length) bytes[at] = below(256); break;
      case 1: if (at < length) bytes[at] ^= 1 << below(8); break;
      case 2: // out
        if (at + size <= length) memmove(bytes + at, bytes + at + size, length - at - size), length -= size;
        break;
      case 3: // in
        if (length + size > bytesMax) break;
        memmove(bytes + at + size, bytes + at, length - at), length += size;
        for (size_t i = 0; i < size; i++) bytes[at + i] = below(4) ? (uint8_t)"\n\0 :,1f"[below(7)] : below(256);
        break;
      default: { // a piece of another
        int other = below(count);
        if (!lengths[other] || size > lengths[other] || at + size > length) break;
        memcpy(bytes + at, corpus[other] + below(lengths[other] - size + 1), size);
      }
    }
  }
  return length;
}

int main(int arguments, char **argument) {
  if (arguments < 3) return fprintf(stderr, "usage: standalone RUNS SEED [FILE...]\n"), 2;
  for (int i = 3; i < arguments && count < filesMax; i++) {
    FILE *file = fopen(argument[i], "r");
    if (!file) return perror(argument[i]), 2;
    lengths[count] = fread(corpus[count], 1, bytesMax, file), fclose(file);
    LLVMFuzzerTestOneInput(corpus[count], lengths[count]);
    count++;
  }
  if (count == 0) count = 1;
  state = strtoul(argument[2], NULL, 10) * 2654435761u + 1;
  for (long left = atol(argument[1]); left > 0; left--) {
    static uint8_t bytes[bytesMax];
    int from = below(count);
    memcpy(bytes, corpus[from], lengths[from]);
    size_t length = mutate(bytes, lengths[from]);
    // As libFuzzer passes it: the byte behind the end is out of bounds.
    uint8_t *exact = malloc(length ? length : 1);
    memcpy(exact, bytes, length);
    LLVMFuzzerTestOneInput(exact, length);
    free(exact);
  }
  return 0;
}
