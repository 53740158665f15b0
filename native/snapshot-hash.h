// Checksums of snapshots: snapshot-hash.c.
#pragma once
#include "helper.h"
#include <sys/types.h>

// How much memory is read and checked at a time.
enum { pieceBytes = 1 << 20 };
#define MEMORY_SUMS "memory-sums"

// A checksum under way: its state behind the first `at` bytes, and up to where its states were written down.
struct running {
  uint64_t hash;
  off_t at, written;
};

// The checksum of one image of memory: its state behind each piece.
struct sums {
  char name[64];
  long long size;
  int isImage; // its line says `image`; an earlier release wrote others
  uint64_t begin;
  uint64_t *behind;
  uint64_t pieces;
  struct sums *next;
};

// An image of memory whose checksum is made while it is written.
struct followed {
  char name[64];
  struct running sum;
  off_t writtenOut;
  FILE *states; // the states for `memory-sums`, kept in `text`
  char *text;
  size_t length;
  struct followed *next;
};

// The images of a directory. `writeOut`: hands what there is of them to the disk.
struct images {
  struct followed *first;
  int writeOut;
};

// The image of that name; NULL with errno if memory is short.
struct followed *followedImage(struct images *, const char *name); // snapshot-follow.c
int catchUp(const struct images *, struct followed *, int fd, int isComplete);
void freeImages(struct images *);
// Like `sealDirectory`, but continues what was already taken in of images.
int sealFollowed(const char *path, struct images *); // snapshot-seal.c
// Whether a file is one of CRIU's images of memory: nearly all of a snapshot, and nothing that CRIU takes decisions
// from.
int isMemory(const char *name);

// How a checksum begins: with the file's size, or, for an image of memory, whose size is not known yet, without it.
uint64_t beginOf(off_t size);
uint64_t beginOfImage(void);
// Continues up to `end`, which is behind a whole number of blocks or the file's end. Writes the state behind each
// piece into `states`, unless that is NULL; -1 with errno on failure.
int hashOn(struct running *, int fd, off_t end, FILE *states);
// Writes down the last state, once the file has ended.
void endHash(struct running *, FILE *states);
// The checksums of a directory; NULL if it has none, or they are malformed.
struct sums *readSums(int directory);
void freeSums(struct sums *);
// The checksums of one file; NULL with errno if there are none.
const struct sums *sumsOf(const struct sums *all, const char *name);
// The checksum of a whole image.
uint64_t endOf(const struct sums *);
// Reads a piece, with zeros behind the file's end. Answers its length, or -1 with errno: EBADMSG if the piece has
// changed.
ssize_t readPiece(const struct sums *, int fd, uint64_t number, uint8_t *piece);
