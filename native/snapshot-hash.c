// The checksums of a snapshot's files, see snapshot-seal.c, and those of its memory, piece by piece.
//
// For each image of memory the file `memory-sums` holds a line `image NAME SIZE`, and then the state of the checksum
// behind each MiB of the image. So one MiB can be checked without those before it: the checksum continues from the
// state. A file's checksum begins with its size; an image's does not, because it is made while the image is written.
// Earlier releases wrote `file` for images whose checksum began with their size, and had them in `checksums` too.
#define _GNU_SOURCE
#include "snapshot-hash.h"
#include <sys/stat.h>

enum { blockBytes = 1 << 16, nameBytesMax = 64 };

static const uint64_t prime1 = 11400714785074694791ULL, prime2 = 14029467366897019727ULL, prime3 = 1609587929392839161ULL,
                      prime4 = 9650029242287828579ULL, prime5 = 2870177450012600261ULL;

static inline uint64_t rotate(uint64_t value, int bits) { return value << bits | value >> (64 - bits); }

static inline uint64_t word(const uint8_t *p) {
  uint64_t value;
  memcpy(&value, p, 8);
  return value;
}

static inline uint64_t roundOf(uint64_t sum, uint64_t input) { return rotate(sum + input * prime2, 31) * prime1; }

static inline uint64_t merge(uint64_t hash, uint64_t lane) { return (hash ^ roundOf(0, lane)) * prime1 + prime4; }

// XXH64 of a whole number of 32-byte stripes (xxhash.com, "xxHash fast digest algorithm").
static uint64_t xxh64(const uint8_t *p, size_t size, uint64_t seed) {
  uint64_t a = seed + prime1 + prime2, b = seed + prime2, c = seed, d = seed - prime1;
  for (const uint8_t *end = p + size; p < end; p += 32) {
    a = roundOf(a, word(p)), b = roundOf(b, word(p + 8)), c = roundOf(c, word(p + 16)), d = roundOf(d, word(p + 24));
  }
  uint64_t hash = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18);
  hash = merge(merge(merge(merge(hash, a), b), c), d) + size;
  hash = (hash ^ hash >> 33) * prime2;
  hash = (hash ^ hash >> 29) * prime3;
  return hash ^ hash >> 32;
}

static int isZero(const uint8_t *p, size_t size) { return !p[0] && !memcmp(p, p + 1, size - 1); }

uint64_t beginOf(off_t size) { return prime5 ^ (uint64_t)size; }

uint64_t beginOfImage(void) { return beginOf(0); }

static uint64_t addBlock(uint64_t hash, const uint8_t *block, off_t at) {
  return isZero(block, blockBytes) ? hash : xxh64(block, blockBytes, hash ^ (uint64_t)at * prime1);
}

static void writeStates(FILE *states, off_t *written, off_t upTo, uint64_t hash) {
  for (; *written < upTo; *written += pieceBytes) fprintf(states, "%016llx\n", (unsigned long long)hash);
}

int hashOn(struct running *r, int fd, off_t end, FILE *states) {
  static uint8_t block[blockBytes] __attribute__((aligned(64)));
  while (r->at < end) {
    off_t data = lseek(fd, r->at, SEEK_DATA);
    if (data < 0 && errno != ENXIO) return -1;
    if (data < 0 || data >= end) return r->at = end, 0;
    off_t at = data - data % blockBytes;
    if (states) writeStates(states, &r->written, at - at % pieceBytes, r->hash);
    size_t wanted = end - at < blockBytes ? end - at : blockBytes, got = 0;
    for (ssize_t n; got < wanted; got += n)
      if ((n = pread(fd, block + got, wanted - got, at + got)) <= 0) return n < 0 ? -1 : (errno = EIO, -1);
    if (wanted < blockBytes) memset(block + wanted, 0, blockBytes - wanted);
    r->hash = addBlock(r->hash, block, at);
    r->at = at + (off_t)wanted;
  }
  return 0;
}

void endHash(struct running *r, FILE *states) { writeStates(states, &r->written, r->at, r->hash); }

void freeSums(struct sums *all) {
  for (struct sums *next; all; all = next) {
    next = all->next;
    free(all->behind);
    free(all);
  }
}

// Adds a line to what was read; -1 if it is malformed.
static int addLine(struct sums **all, const char *line) {
  struct sums *s = *all;
  int isFile = !strncmp(line, "file ", 5);
  if (isFile || !strncmp(line, "image ", 6)) {
    if (!(s = calloc(1, sizeof *s))) return -1;
    s->next = *all, *all = s;
    int fields = sscanf(strchr(line, ' '), "%63s %lld", s->name, &s->size);
    s->isImage = !isFile;
    s->begin = isFile ? beginOf(s->size) : beginOfImage();
    return fields == 2 ? 0 : -1;
  }
  if (!s) return -1;
  if (!(s->pieces & (s->pieces - 1))) {
    uint64_t *room = reallocarray(s->behind, s->pieces ? s->pieces * 2 : 1, sizeof *room);
    if (!room) return -1;
    s->behind = room;
  }
  s->behind[s->pieces++] = strtoull(line, NULL, 16);
  return 0;
}

struct sums *readSums(int directory) {
  int fd = openat(directory, MEMORY_SUMS, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
  if (!file) return NULL;
  struct sums *all = NULL;
  char line[nameBytesMax + 40];
  while (fgets(line, sizeof line, file))
    if (addLine(&all, line) < 0) {
      freeSums(all), all = NULL;
      break;
    }
  fclose(file);
  return all;
}

const struct sums *sumsOf(const struct sums *all, const char *name) {
  for (; all; all = all->next)
    if (!strcmp(all->name, name)) return all;
  return errno = ENOENT, NULL;
}

uint64_t endOf(const struct sums *s) { return s->pieces ? s->behind[s->pieces - 1] : s->begin; }

ssize_t readPiece(const struct sums *s, int fd, uint64_t number, uint8_t *piece) {
  off_t at = (off_t)number * pieceBytes;
  if (number >= s->pieces || at >= s->size) return errno = EIO, -1;
  size_t wanted = s->size - at < pieceBytes ? s->size - at : pieceBytes, got = 0;
  for (ssize_t n; got < wanted; got += n)
    if ((n = pread(fd, piece + got, wanted - got, at + got)) <= 0) return n < 0 ? -1 : (errno = EIO, -1);
  memset(piece + wanted, 0, pieceBytes - wanted);
  uint64_t hash = number == 0 ? s->begin : s->behind[number - 1];
  for (size_t from = 0; from < wanted; from += blockBytes) hash = addBlock(hash, piece + from, at + from);
  return hash == s->behind[number] ? (ssize_t)wanted : (errno = EBADMSG, -1);
}
