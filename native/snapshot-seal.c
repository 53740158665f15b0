// Checksums of a snapshot's files: a directory is sealed when it is written and verified before it is used.
//
// The file `checksums` holds a line for each file: XXH64 of its content, its size, its name. Blocks that hold only
// zeros count by their position alone, so sealing a sparse disk reads only its data, and a copy with other holes is
// equal. Images of memory have their checksums only in `memory-sums` (snapshot-hash.c), which has a line here: an
// earlier release would compare the line of an image with a checksum that begins with the size, and call each image
// damaged.
#define _GNU_SOURCE
#include "snapshot-hash.h"
#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { filesMax = 100000, flushLanes = 8 };

static const char checksums[] = "checksums", unfinished[] = "checksums.partial";

static int complain(const char *what, const char *problem) {
  dprintf(2, "%s: %s\n", what, problem);
  return 1;
}

// What else a directory holds beside the files that are sealed.
static int isOther(const char *name) {
  return !strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, checksums) || !strcmp(name, unfinished);
}

int isMemory(const char *name) { return !strncmp(name, "pages-", 6); }

// Makes the checksum of a file. For an image of memory, its states also go into `states`.
static int sumUp(int fd, const char *name, off_t size, uint64_t *hash, struct images *images, FILE *states) {
  struct running sum = {.hash = beginOf(size)};
  struct followed *image = states ? followedImage(images, name) : NULL;
  if (states && !image) return -1;
  if ((image ? catchUp(images, image, fd, 1) : hashOn(&sum, fd, size, NULL)) < 0) return -1;
  *hash = image ? image->sum.hash : sum.hash;
  if (image && image->sum.at != size) return errno = EIO, -1;
  if (image && fprintf(states, "image %s %lld\n%s", name, (long long)size, image->text) < 0) return -1;
  return 0;
}

static int sealFile(FILE *sums, int directory, const char *name, int durable, struct images *images, FILE *states) {
  struct stat s;
  uint64_t hash;
  int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &s) < 0) return complain(name, strerror(errno));
  int bad = S_ISREG(s.st_mode) ? sumUp(fd, name, s.st_size, &hash, images, states) < 0 || (durable && fsync(fd) < 0) : 0;
  if (!bad && S_ISREG(s.st_mode) && !states) fprintf(sums, "%016llx %lld %s\n", (unsigned long long)hash, (long long)s.st_size, name);
  if (bad) complain(name, strerror(errno));
  close(fd);
  return bad;
}

static FILE *createSums(int directory) {
  int fd = openat(directory, MEMORY_SUMS, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  return fd < 0 ? NULL : fdopen(fd, "w");
}

// The checksums get their name only when they are complete: half of them would make intact files look damaged.
static int seal(const char *path, int durable, struct images *images) {
  DIR *all = opendir(path);
  if (!all) return complain(path, strerror(errno));
  int directory = dirfd(all), bad = 0;
  int out = openat(directory, unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  FILE *sums = out < 0 ? NULL : fdopen(out, "w");
  if (!sums) return complain(checksums, strerror(errno));
  FILE *states = NULL;
  for (struct dirent *e; !bad && (e = readdir(all));) {
    if (isOther(e->d_name) || !strcmp(e->d_name, MEMORY_SUMS)) continue;
    if (isMemory(e->d_name) && !states && !(states = createSums(directory))) bad = complain(MEMORY_SUMS, strerror(errno));
    else bad = sealFile(sums, directory, e->d_name, durable, images, isMemory(e->d_name) ? states : NULL);
  }
  if (states && fclose(states)) bad = complain(MEMORY_SUMS, strerror(errno));
  if (states && !bad) bad = sealFile(sums, directory, MEMORY_SUMS, durable, images, NULL);
  if (!bad && (fflush(sums) || (durable && fsync(out)))) bad = complain(checksums, strerror(errno));
  if (!bad && renameat(directory, unfinished, directory, checksums)) bad = complain(checksums, strerror(errno));
  if (!bad && durable && fsync(directory)) bad = complain(checksums, strerror(errno));
  fclose(sums);
  closedir(all);
  return bad;
}

// seal DIRECTORY: writes `checksums` over all files beside it; with `durable`, everything is on the disk when it ends.
int sealDirectory(const char *path, int durable) {
  struct images none = {0};
  int bad = seal(path, durable, &none);
  freeImages(&none);
  return bad;
}

int sealFollowed(const char *path, struct images *images) { return seal(path, 0, images); }

// Writes out the files of a directory that are in this lane by their inode. Their place in the directory would not do:
// it changes when the checksums are written meanwhile and get their name.
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

// A checkpoint has some forty files, and each fsync(2) makes the disk empty its cache. The kernel does that once for
// all processes that ask at the same time, so several ask.
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

// flush DIRECTORY [FILE...]: when it ends, everything in the directory, or those files of it, is on the disk. A
// snapshot that was kept without memory has no `memory-sums` either.
int flushDirectory(const char *path, char **name) {
  int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return complain(path, strerror(errno));
  int bad = *name ? 0 : flushFiles(path);
  for (; *name && !bad; name++) {
    int fd = openat(directory, *name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 ? errno != ENOENT || strcmp(*name, MEMORY_SUMS) : fsync(fd)) bad = complain(*name, strerror(errno));
    if (fd >= 0) close(fd);
  }
  if (!bad && fsync(directory)) bad = complain(path, strerror(errno));
  close(directory);
  return bad;
}

static int verifyFile(int directory, const char *name, off_t size, struct running sum, uint64_t wanted) {
  struct stat s;
  int bad = 0, fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &s) < 0) bad = complain(name, strerror(errno));
  else if (s.st_size != size) bad = complain(name, "has another size");
  else if (hashOn(&sum, fd, size, NULL) < 0) bad = complain(name, strerror(errno));
  else if (sum.hash != wanted) bad = complain(name, "has other content");
  if (fd >= 0) close(fd);
  return bad;
}

// Verifies the images that have no line in `checksums`, or only one that says the same.
static int verifyImages(int directory, const struct sums *images) {
  int bad = 0;
  for (; images && !bad; images = images->next)
    if (images->isImage) bad = verifyFile(directory, images->name, images->size, (struct running){.hash = images->begin}, endOf(images));
  return bad;
}

// verify DIRECTORY [memory|rest]: 0 if every file that was sealed, or every one of that part, is there and unchanged.
int verifyDirectory(const char *path, const char *part) {
  int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int in = directory < 0 ? -1 : openat(directory, checksums, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  FILE *sums = in < 0 ? NULL : fdopen(in, "r");
  if (!sums) return complain(checksums, strerror(errno));
  struct sums *images = readSums(directory);
  unsigned long long wanted;
  long long size;
  char name[256];
  int seen = 0, bad = 0, ofMemory = !part || !strcmp(part, "memory");
  for (int fields; !bad && (fields = fscanf(sums, "%llx %lld %255s\n", &wanted, &size, name)) != EOF; seen++) {
    if (fields != 3 || seen == filesMax) { bad = complain(checksums, "malformed"); break; }
    if (ofMemory && !images && !strcmp(name, MEMORY_SUMS)) { bad = complain(MEMORY_SUMS, "is missing or malformed"); break; }
    const struct sums *image = sumsOf(images, name);
    if ((part && isMemory(name) != ofMemory) || (image && image->isImage)) continue;
    bad = verifyFile(directory, name, size, (struct running){.hash = beginOf(size)}, wanted);
  }
  if (!bad && ofMemory) bad = verifyImages(directory, images);
  freeSums(images);
  fclose(sums);
  close(directory);
  return bad || seen == 0 ? (bad ? 1 : complain(checksums, "empty")) : 0;
}
