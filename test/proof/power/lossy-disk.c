// A file that is a disk of which a loss of power takes what was not flushed. It is served by FUSE, for a loop device.
//
//   lossy-disk serve FILE IMAGE OVERLAY LOG
//     Mounts the disk on FILE and serves it until it is unmounted. Reads find what OVERLAY has, else IMAGE. Writes go to
//     OVERLAY, and with every flush to LOG, in the order in which they came. LOG may be /dev/null.
//   lossy-disk serve FILE IMAGE OVERLAY /dev/null LOG FROM TO SEED
//     The disk after a loss of power: of the writes in LOG from FROM to TO, none of which was flushed, it has some, by
//     SEED. Half a write is possible.
//   lossy-disk apply IMAGE LOG FROM TO
//     Brings IMAGE up to date with LOG from FROM to TO.
//   lossy-disk list LOG
//     Prints a line for each record: where it ends in LOG, and the length of what it wrote; a flush has length 0.
//
// LOSSY_DISK_FAULTS, in the environment, names a file of three numbers (4 bytes each) that may change at any time: how
// many of a hundred writes are refused (EIO), how many of a hundred flushes are, and how many milliseconds each takes.
//
// LOG holds records: offset and length (8 bytes each, of the machine's byte order) and the bytes; a flush has length 0.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { page = 4096, writeMax = 1 << 20, requestMax = writeMax + 4096 };

struct record {
  uint64_t offset, length;
};

struct faults {
  uint32_t refusedWrites, refusedFlushes, delayMs;
};

static int image, overlay, logFile;
static const volatile struct faults *faults;
static uint8_t *isOver; // one bit per page: set if OVERLAY has it
static uint64_t diskBytes;
static char request[requestMax] __attribute__((aligned(8))), data[requestMax];

static void fail(const char *what) {
  fprintf(stderr, "lossy-disk: %s: %s\n", what, strerror(errno));
  exit(1);
}

static int opened(const char *path, int flags) {
  int fd = open(path, flags | O_CLOEXEC, 0600);
  if (fd < 0) fail(path);
  return fd;
}

static void readAll(int fd, void *to, uint64_t length, uint64_t offset) {
  for (uint64_t done = 0; done < length;) {
    ssize_t n = pread(fd, (char *)to + done, length - done, offset + done);
    if (n < 0) fail("read");
    if (n == 0) { memset((char *)to + done, 0, length - done); return; }
    done += n;
  }
}

static void writeAll(int fd, const void *from, uint64_t length, uint64_t offset) {
  for (uint64_t done = 0; done < length;) {
    ssize_t n = pwrite(fd, (const char *)from + done, length - done, offset + done);
    if (n <= 0) fail("write");
    done += n;
  }
}

static int over(uint64_t index) { return isOver[index / 8] >> (index % 8) & 1; }

// Reads and writes go page by page: each page is as a whole in OVERLAY or in IMAGE.
static void readDisk(char *to, uint64_t length, uint64_t offset) {
  while (length > 0) {
    uint64_t index = offset / page, n = page - offset % page;
    if (n > length) n = length;
    readAll(over(index) ? overlay : image, to, n, offset);
    to += n, offset += n, length -= n;
  }
}

static void writeDisk(const char *from, uint64_t length, uint64_t offset) {
  while (length > 0) {
    uint64_t index = offset / page, n = page - offset % page;
    if (n > length) n = length;
    if (n < page && !over(index)) {
      char whole[page];
      readAll(image, whole, page, index * page);
      writeAll(overlay, whole, page, index * page);
    }
    writeAll(overlay, from, n, offset);
    isOver[index / 8] |= 1 << (index % 8);
    from += n, offset += n, length -= n;
  }
}

static void keep(uint64_t offset, uint64_t length, const char *bytes) {
  struct record head = {offset, length};
  struct iovec parts[] = {{&head, sizeof head}, {(void *)bytes, length}};
  if (writev(logFile, parts, length ? 2 : 1) != (ssize_t)(sizeof head + length)) fail("log");
}

static uint64_t seed = 1;
static uint32_t chance(void) { // xorshift64*
  seed ^= seed >> 12, seed ^= seed << 25, seed ^= seed >> 27;
  return (seed * 2685821657736338717ULL) >> 32;
}

// Whether a request is refused; first waits as long as it is to take.
static int isRefused(uint32_t share) {
  struct timespec delay = {faults->delayMs / 1000, faults->delayMs % 1000 * 1000000L};
  if (faults->delayMs) nanosleep(&delay, NULL);
  return share && chance() % 100 < share;
}

// Some of the unflushed writes are on the disk: none, all, or a random choice; and of some only a part, in whole
// sectors.
static void loseSome(int log, uint64_t from, uint64_t to) {
  uint32_t share = chance() % 5 * 25;
  while (from < to) {
    struct record head;
    readAll(log, &head, sizeof head, from);
    from += sizeof head;
    if (head.length > writeMax) errno = EINVAL, fail("log");
    uint64_t sectors = head.length / 512, kept = head.length;
    if (chance() % 100 >= share) kept = 0;
    else if (share < 100 && sectors > 1 && chance() % 4 == 0) kept = chance() % sectors * 512;
    readAll(log, data, kept, from);
    writeDisk(data, kept, head.offset);
    from += head.length;
  }
}

static void apply(int log, uint64_t from, uint64_t to) {
  while (from < to) {
    struct record head;
    readAll(log, &head, sizeof head, from);
    from += sizeof head;
    if (head.length > writeMax) errno = EINVAL, fail("log");
    readAll(log, data, head.length, from);
    writeAll(image, data, head.length, head.offset);
    from += head.length;
  }
}

static void list(int log) {
  struct stat s;
  if (fstat(log, &s)) fail("log");
  struct record head;
  for (uint64_t at = 0; at + sizeof head <= (uint64_t)s.st_size;) {
    readAll(log, &head, sizeof head, at);
    at += sizeof head + head.length;
    printf("%llu %llu\n", (unsigned long long)at, (unsigned long long)head.length);
  }
}

static void reply(int fuse, uint64_t unique, int error, const void *body, size_t length) {
  struct fuse_out_header head = {.len = sizeof head + (error ? 0 : length), .error = -error, .unique = unique};
  struct iovec parts[] = {{&head, sizeof head}, {(void *)body, length}};
  // ENOENT: the request was interrupted.
  if (writev(fuse, parts, error || !length ? 1 : 2) < 0 && errno != ENOENT) fail("reply");
}

static struct fuse_attr attributes(void) {
  return (struct fuse_attr){
      .ino = FUSE_ROOT_ID, .size = diskBytes, .blocks = diskBytes / 512, .mode = S_IFREG | 0600, .nlink = 1, .blksize = page};
}

static void answer(int fuse, struct fuse_in_header *in, void *body) {
  switch (in->opcode) {
  case FUSE_INIT: {
    struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = writeMax,
        .max_readahead = 1 << 17, .flags = FUSE_BIG_WRITES | FUSE_MAX_PAGES, .max_pages = writeMax / page, .time_gran = 1,
        .max_background = 64, .congestion_threshold = 48};
    return reply(fuse, in->unique, 0, &out, sizeof out);
  }
  case FUSE_GETATTR:
  case FUSE_SETATTR: {
    struct fuse_attr_out out = {.attr_valid = 3600, .attr = attributes()};
    return reply(fuse, in->unique, 0, &out, sizeof out);
  }
  case FUSE_OPEN: {
    // Each write of the loop device reaches this program before it is answered.
    struct fuse_open_out out = {.open_flags = FOPEN_DIRECT_IO};
    return reply(fuse, in->unique, 0, &out, sizeof out);
  }
  case FUSE_READ: {
    struct fuse_read_in *what = body;
    uint64_t length = what->offset >= diskBytes ? 0 : what->size;
    if (length > diskBytes - what->offset) length = diskBytes - what->offset;
    readDisk(data, length, what->offset);
    return reply(fuse, in->unique, 0, data, length);
  }
  case FUSE_WRITE: {
    struct fuse_write_in *what = body;
    if (what->offset + what->size > diskBytes) return reply(fuse, in->unique, EFBIG, NULL, 0);
    if (isRefused(faults->refusedWrites)) return reply(fuse, in->unique, EIO, NULL, 0);
    const char *bytes = (char *)(what + 1);
    writeDisk(bytes, what->size, what->offset);
    keep(what->offset, what->size, bytes);
    struct fuse_write_out out = {.size = what->size};
    return reply(fuse, in->unique, 0, &out, sizeof out);
  }
  case FUSE_FSYNC:
    if (isRefused(faults->refusedFlushes)) return reply(fuse, in->unique, EIO, NULL, 0);
    keep(0, 0, NULL);
    return reply(fuse, in->unique, 0, NULL, 0);
  case FUSE_FLUSH:
  case FUSE_RELEASE:
    return reply(fuse, in->unique, 0, NULL, 0);
  case FUSE_FORGET:
  case FUSE_BATCH_FORGET:
  case FUSE_INTERRUPT:
    return; // these get no answer
  default:
    return reply(fuse, in->unique, ENOSYS, NULL, 0);
  }
}

static void findFaults(void) {
  static const struct faults none;
  const char *path = getenv("LOSSY_DISK_FAULTS");
  faults = path ? mmap(NULL, sizeof *faults, PROT_READ, MAP_SHARED, opened(path, O_RDONLY), 0) : &none;
  if (faults == MAP_FAILED) fail(path);
}

static void serve(const char *point) {
  findFaults();
  int fuse = opened("/dev/fuse", O_RDWR);
  char options[128];
  snprintf(options, sizeof options, "fd=%d,rootmode=100000,user_id=0,group_id=0,default_permissions", fuse);
  if (mount("lossy-disk", point, "fuse.lossy-disk", MS_NOSUID | MS_NODEV, options)) fail(point);
  puts("mounted");
  fflush(stdout);
  for (;;) {
    ssize_t n = read(fuse, request, sizeof request);
    if (n < 0 && errno == ENODEV) return; // unmounted
    if (n < 0 && (errno == EINTR || errno == ENOENT || errno == EAGAIN)) continue;
    if (n < (ssize_t)sizeof(struct fuse_in_header)) fail("request");
    answer(fuse, (struct fuse_in_header *)request, request + sizeof(struct fuse_in_header));
  }
}

int main(int count, char **argument) {
  if (count == 3 && !strcmp(argument[1], "list")) return list(opened(argument[2], O_RDONLY)), 0;
  if (count == 6 && !strcmp(argument[1], "apply")) {
    image = opened(argument[2], O_RDWR);
    return apply(opened(argument[3], O_RDONLY), strtoull(argument[4], 0, 10), strtoull(argument[5], 0, 10)), 0;
  }
  if ((count != 6 && count != 10) || strcmp(argument[1], "serve")) return fputs("usage: see the source\n", stderr), 2;
  image = opened(argument[3], O_RDONLY);
  overlay = opened(argument[4], O_RDWR | O_CREAT | O_TRUNC);
  logFile = opened(argument[5], O_WRONLY | O_CREAT | O_TRUNC);
  struct stat s;
  if (fstat(image, &s)) fail(argument[3]);
  diskBytes = s.st_size;
  isOver = calloc(diskBytes / page / 8 + 1, 1);
  if (!isOver || ftruncate(overlay, diskBytes)) fail(argument[4]);
  if (count == 10) {
    seed = strtoull(argument[9], 0, 10) * 2 + 1;
    loseSome(opened(argument[6], O_RDONLY), strtoull(argument[7], 0, 10), strtoull(argument[8], 0, 10));
  }
  return serve(argument[2]), 0;
}
