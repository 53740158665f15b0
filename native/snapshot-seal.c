// Checksums of a snapshot's files: a directory is sealed when it is written and verified before it is used.
//
// The file `checksums` holds a line for each file: XXH64 of its content, its size, its name. Blocks that hold only
// zeros count by their place alone, so a sparse disk is read no further than it holds data, and a copy with other holes
// is equal.
#define _GNU_SOURCE
#include "helper.h"
#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { blockBytes = 1 << 16, filesMax = 100000, flushLanes = 8 };

static const char checksums[] = "checksums", unfinished[] = "checksums.partial";

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

// Hashes the file from the first to the last byte; -1 with errno on failure.
static int hashFile(int fd, off_t size, uint64_t *result) {
  static uint8_t block[blockBytes] __attribute__((aligned(64)));
  uint64_t hash = prime5 ^ (uint64_t)size;
  for (off_t at = 0; at < size;) {
    off_t data = lseek(fd, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;
    if (data < 0) return -1;
    at = data - data % blockBytes;
    size_t wanted = size - at < blockBytes ? size - at : blockBytes, got = 0;
    for (ssize_t n; got < wanted; got += n)
      if ((n = pread(fd, block + got, wanted - got, at + got)) <= 0) return n < 0 ? -1 : (errno = EIO, -1);
    if (wanted < blockBytes) memset(block + wanted, 0, blockBytes - wanted);
    if (!isZero(block, blockBytes)) hash = xxh64(block, blockBytes, hash ^ (uint64_t)at * prime1);
    at += blockBytes;
  }
  *result = hash;
  return 0;
}

static int complain(const char *what, const char *problem) {
  dprintf(2, "%s: %s\n", what, problem);
  return 1;
}

// What a directory holds beside the files that are sealed.
static int isOther(const char *name) {
  return !strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, checksums) || !strcmp(name, unfinished);
}

static int sealFile(FILE *sums, int directory, const char *name, int durable) {
  struct stat s;
  uint64_t hash;
  int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &s) < 0) return complain(name, strerror(errno));
  int bad = S_ISREG(s.st_mode) ? hashFile(fd, s.st_size, &hash) < 0 || (durable && fsync(fd) < 0) : 0;
  if (!bad && S_ISREG(s.st_mode)) fprintf(sums, "%016llx %lld %s\n", (unsigned long long)hash, (long long)s.st_size, name);
  if (bad) complain(name, strerror(errno));
  close(fd);
  return bad;
}

// seal DIRECTORY: writes `checksums` over all files beside it; with `durable`, everything is on the disk when it has
// ended. They have their name when they are whole: half of them would make damaged what is not.
int sealDirectory(const char *path, int durable) {
  DIR *all = opendir(path);
  if (!all) return complain(path, strerror(errno));
  int directory = dirfd(all), bad = 0;
  int out = openat(directory, unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  FILE *sums = out < 0 ? NULL : fdopen(out, "w");
  if (!sums) return complain(checksums, strerror(errno));
  for (struct dirent *e; !bad && (e = readdir(all));)
    if (!isOther(e->d_name)) bad = sealFile(sums, directory, e->d_name, durable);
  if (!bad && (fflush(sums) || (durable && fsync(out)))) bad = complain(checksums, strerror(errno));
  if (!bad && renameat(directory, unfinished, directory, checksums)) bad = complain(checksums, strerror(errno));
  if (!bad && durable && fsync(directory)) bad = complain(checksums, strerror(errno));
  fclose(sums);
  closedir(all);
  return bad;
}

// Writes out the files of a directory whose inode says that they are of this lane. Not by their place among the others:
// the checksums may be written at the time, and get their name.
static int flushLane(const char *path, int lane) {
  DIR *all = opendir(path);
  if (!all) return complain(path, strerror(errno));
  int bad = 0;
  for (struct dirent *e; !bad && (e = readdir(all));) {
    if (e->d_type != DT_REG || e->d_ino % flushLanes != (ino_t)lane || !strcmp(e->d_name, unfinished)) continue;
    int fd = openat(dirfd(all), e->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fsync(fd)) bad = complain(e->d_name, strerror(errno));
    if (fd >= 0) close(fd);
  }
  closedir(all);
  return bad;
}

// A checkpoint is of some forty files, and each fsync(2) lets the disk empty its cache. The kernel does that once for all
// who ask for it at the same time, so several processes ask.
static int flushFiles(const char *path) {
  int bad = 0, status;
  for (int lane = 0; lane < flushLanes; lane++) {
    pid_t pid = fork();
    if (pid == 0) _exit(flushLane(path, lane));
    if (pid < 0) bad |= flushLane(path, lane);
  }
  while (wait(&status) > 0) bad |= status != 0;
  return bad;
}

// flush DIRECTORY [FILE]: everything in it, or that file of it, is on the disk when it has ended.
int flushDirectory(const char *path, const char *name) {
  int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return complain(path, strerror(errno));
  int bad = 0, fd = name ? openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
  if (!name) bad = flushFiles(path);
  else if (fd < 0 || fsync(fd)) bad = complain(name, strerror(errno));
  if (!bad && fsync(directory)) bad = complain(path, strerror(errno));
  if (fd >= 0) close(fd);
  close(directory);
  return bad;
}

// CRIU's images of memory: nearly all of a snapshot, and nothing that CRIU goes by.
static int isMemory(const char *name) { return !strncmp(name, "pages-", 6); }

// verify DIRECTORY [memory|rest]: 0 when every file that was sealed, or every one of that part, is there and unchanged.
int verifyDirectory(const char *path, const char *part) {
  int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int in = directory < 0 ? -1 : openat(directory, checksums, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  FILE *sums = in < 0 ? NULL : fdopen(in, "r");
  if (!sums) return complain(checksums, strerror(errno));
  unsigned long long wanted;
  long long size;
  char name[256];
  int seen = 0, bad = 0;
  for (int fields; !bad && (fields = fscanf(sums, "%llx %lld %255s\n", &wanted, &size, name)) != EOF; seen++) {
    if (fields != 3 || seen == filesMax) { bad = complain(checksums, "malformed"); break; }
    if (part && isMemory(name) != !strcmp(part, "memory")) continue;
    struct stat s;
    uint64_t hash = 0;
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &s) < 0) bad = complain(name, strerror(errno));
    else if (s.st_size != size) bad = complain(name, "has another size");
    else if (hashFile(fd, s.st_size, &hash) < 0) bad = complain(name, strerror(errno));
    else if (hash != wanted) bad = complain(name, "has other content");
    if (fd >= 0) close(fd);
  }
  fclose(sums);
  close(directory);
  return bad || seen == 0 ? (bad ? 1 : complain(checksums, "empty")) : 0;
}
