// Checksums of snapshots: snapshot-hash.c.
#pragma once
#include "helper.h"
#include <sys/types.h>

// What one look at memory takes in.
enum { pieceBytes = 1 << 20 };
#define MEMORY_SUMS "memory-sums"

// A checksum under way: what the first `at` bytes have come to, and up to where that was written down by the piece.
struct running {
  uint64_t hash;
  off_t at, written;
};

// The checksums of one image of memory, behind each of its pieces.
struct sums {
  char name[64];
  long long size;
  int isImage; // by its line; an earlier release wrote others
  uint64_t begin;
  uint64_t *behind;
  uint64_t pieces;
  struct sums *next;
};

// An image of memory whose checksums are made while it is written.
struct followed {
  char name[64];
  struct running sum;
  off_t writtenOut;
  FILE *states; // what is to be in `memory-sums`, as `text`
  char *text;
  size_t length;
  struct followed *next;
};

// Those of a directory. `writeOut`: what there is of them is handed to the disk.
struct images {
  struct followed *first;
  int writeOut;
};

// The image of that name; NULL and errno where there is no memory for it.
struct followed *followedImage(struct images *, const char *name); // snapshot-follow.c
int catchUp(const struct images *, struct followed *, int fd, int isComplete);
void freeImages(struct images *);
// As `sealDirectory`, with what was taken in of images before.
int sealFollowed(const char *path, struct images *); // snapshot-seal.c
// CRIU's images of memory: nearly all of a snapshot, and nothing that CRIU goes by.
int isMemory(const char *name);

// The checksum of a file of that size, and of an image of memory whose size is not known yet, before their first byte.
uint64_t beginOf(off_t size);
uint64_t beginOfImage(void);
// Goes on to `end`, behind a whole number of blocks or at the file's end. Writes down in `states`, unless that is NULL,
// what it came to behind each piece that it has left; -1 with errno on failure.
int hashOn(struct running *, int fd, off_t end, FILE *states);
// Writes down the rest, where the file has ended.
void endHash(struct running *, FILE *states);
// Those of a directory; NULL where it has none, or they are malformed.
struct sums *readSums(int directory);
void freeSums(struct sums *);
// NULL and errno where there are none of that file.
const struct sums *sumsOf(const struct sums *all, const char *name);
// The checksum of all of an image.
uint64_t endOf(const struct sums *);
// Reads a piece, with zeros behind the file's end. Answers its length, or -1 with errno: EBADMSG where it is not what it
// was.
ssize_t readPiece(const struct sums *, int fd, uint64_t number, uint8_t *piece);
