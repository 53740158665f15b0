// Checksums of snapshots: snapshot-hash.c.
#pragma once
#include "helper.h"
#include <sys/types.h>

// What one look at memory takes in.
enum { pieceBytes = 1 << 20 };
#define MEMORY_SUMS "memory-sums"

// The checksums of one image of memory, behind each of its pieces.
struct sums {
  char name[64];
  long long size;
  uint64_t *behind;
  uint64_t pieces;
  struct sums *next;
};

// Hashes the file from the first to the last byte, and writes down in `states`, unless that is NULL, what it has come to
// behind each piece; -1 with errno on failure.
int hashFile(int fd, off_t size, uint64_t *result, FILE *states);
// Those of a directory; NULL where it has none, or they are malformed.
struct sums *readSums(int directory);
void freeSums(struct sums *);
// NULL and errno where there are none of that file.
const struct sums *sumsOf(const struct sums *all, const char *name);
// Reads a piece, with zeros behind the file's end. Answers its length, or -1 with errno: EBADMSG where it is not what it
// was.
ssize_t readPiece(const struct sums *, int fd, uint64_t number, uint8_t *piece);
