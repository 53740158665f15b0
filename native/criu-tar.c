// Packs and unpacks file systems in memory for CRIU, in the format that tar and gzip write (pax(1) "ustar", RFC 1952),
// if they hold only a few directories, symbolic links and empty files: /dev, an empty /dev/shm, and the directory of
// the control groups. tar does all others. Each can read what the other has written.
#define _GNU_SOURCE
#include "criu-tar.h"
#include "gzip.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { blockBytes = 512, archiveBytesMax = 1 << 18, depthMax = 8, gzipHeaderBytes = 10, gzipTrailerBytes = 8, storedMax = 0xffff };

struct entry {
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100], magic[6], version[2];
  char userName[32], groupName[32], major[8], minor[8], prefix[155], rest[12];
};
_Static_assert(sizeof(struct entry) == blockBytes, "an entry is a block");

static uint8_t archive[archiveBytesMax], packed[archiveBytesMax + (archiveBytesMax / storedMax + 2) * 5 + 32];
static size_t archived;

// ---- packing

static unsigned sumOf(const struct entry *e) {
  unsigned sum = 0;
  for (size_t i = 0; i < sizeof *e; i++) sum += ((const uint8_t *)e)[i];
  for (size_t i = 0; i < sizeof e->sum; i++) sum += ' ' - (uint8_t)e->sum[i];
  return sum;
}

static int add(const char *name, const struct stat *facts, char type, const char *link) {
  struct entry *e = (struct entry *)(archive + archived);
  // Two blocks of zeros end an archive.
  if (archived + 3 * blockBytes > sizeof archive || strlen(name) >= sizeof e->name || strlen(link) >= sizeof e->link) return -1;
  if (facts->st_uid > 07777777 || facts->st_gid > 07777777 || facts->st_mtime < 0 || facts->st_mtime > 077777777777) return -1;
  strcpy(e->name, name);
  strcpy(e->link, link);
  e->type = type;
  snprintf(e->mode, sizeof e->mode, "%07o", facts->st_mode & 07777);
  snprintf(e->uid, sizeof e->uid, "%07o", facts->st_uid);
  snprintf(e->gid, sizeof e->gid, "%07o", facts->st_gid);
  snprintf(e->size, sizeof e->size, "%011o", 0);
  snprintf(e->mtime, sizeof e->mtime, "%011llo", (long long)facts->st_mtime);
  memcpy(e->magic, "ustar", 6);
  memcpy(e->version, "00", 2);
  snprintf(e->sum, sizeof e->sum, "%06o", sumOf(e));
  e->sum[7] = ' ';
  archived += blockBytes;
  return 0;
}

static int addDirectory(int fd, const char *name, int depth);

static int addChild(int directory, const char *path, const char *name, int depth) {
  char full[sizeof((struct entry *)0)->name + 2], link[sizeof((struct entry *)0)->link + 1] = "";
  struct stat facts;
  if (snprintf(full, sizeof full, "%s%s", path, name) >= (int)sizeof full || fstatat(directory, name, &facts, AT_SYMLINK_NOFOLLOW) < 0) return -1;
  if (S_ISDIR(facts.st_mode)) {
    int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    strncat(full, "/", sizeof full - strlen(full) - 1);
    return fd < 0 ? -1 : addDirectory(fd, full, depth + 1);
  }
  if (S_ISLNK(facts.st_mode)) {
    if (readlinkat(directory, name, link, sizeof link) >= (ssize_t)sizeof link - 1) return -1;
    return add(full, &facts, '2', link);
  }
  return S_ISREG(facts.st_mode) && facts.st_size == 0 && facts.st_nlink == 1 ? add(full, &facts, '0', "") : -1;
}

// Closes `fd`.
static int addDirectory(int fd, const char *name, int depth) {
  static dev_t device;
  struct stat facts;
  DIR *all = fdopendir(fd);
  int result = all && fstat(fd, &facts) == 0 && depth < depthMax ? 0 : -1;
  if (depth == 0 && result == 0) device = facts.st_dev;
  if (result == 0 && facts.st_dev != device) result = -1;
  if (result == 0) result = add(name, &facts, '5', "");
  for (struct dirent *e; result == 0 && (e = readdir(all));)
    if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) result = addChild(fd, name, e->d_name, depth);
  if (all) closedir(all);
  return result;
}

static int writePacked(size_t size) {
  for (size_t at = 0; at < size;) {
    ssize_t n = write(1, packed + at, size - at);
    if (n < 0 && errno != EINTR) return 1;
    if (n > 0) at += n;
  }
  return 0;
}

static int pack(const char *directory) {
  int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 || addDirectory(fd, "./", 0) < 0) return -1;
  archived += 2 * blockBytes;
  static const uint8_t header[gzipHeaderBytes] = {0x1f, 0x8b, 8, [9] = 0xff};
  size_t at = gzipHeaderBytes;
  memcpy(packed, header, sizeof header);
  for (size_t from = 0; from < archived;) {
    uint16_t size = archived - from < storedMax ? archived - from : storedMax, sizes[2] = {size, ~size};
    packed[at] = from + size == archived;
    memcpy(packed + at + 1, sizes, sizeof sizes);
    memcpy(packed + at + 5, archive + from, size);
    at += 5 + size, from += size;
  }
  uint32_t trailer[2] = {crc32Of(0, archive, archived), archived};
  memcpy(packed + at, trailer, sizeof trailer);
  return writePacked(at + sizeof trailer);
}

// ---- unpacking

// Reads an archive that is not compressed; -1 if it is compressed, or larger than any that this file writes.
static int readArchive(void) {
  ssize_t size = pread(0, packed, sizeof packed, 0);
  if (size < gzipHeaderBytes + gzipTrailerBytes || size == sizeof packed || memcmp(packed, "\x1f\x8b\x08\0", 4)) return -1;
  size_t at = gzipHeaderBytes, end = size - gzipTrailerBytes;
  for (int isLast = 0; !isLast;) {
    uint16_t sizes[2];
    if (at + 5 > end || packed[at] > 1) return -1;
    isLast = packed[at];
    memcpy(sizes, packed + at + 1, sizeof sizes);
    if ((sizes[0] ^ sizes[1]) != storedMax || at + 5 + sizes[0] > end || archived + sizes[0] > sizeof archive) return -1;
    memcpy(archive + archived, packed + at + 5, sizes[0]);
    at += 5 + sizes[0], archived += sizes[0];
  }
  uint32_t trailer[2];
  memcpy(trailer, packed + at, sizeof trailer);
  return at == end && trailer[0] == crc32Of(0, archive, archived) && trailer[1] == archived ? 0 : -1;
}

static unsigned long numberOf(const char *field, size_t size) {
  char text[16] = "";
  memcpy(text, field, size < sizeof text ? size : sizeof text - 1);
  return strtoul(text, NULL, 8);
}

static const struct entry *entryAt(size_t at) {
  const struct entry *e = (const struct entry *)(archive + at);
  return at + blockBytes <= archived && e->name[0] ? e : NULL;
}

static int leadsUp(const char *path) {
  for (const char *part = path; part; part = strchr(part, '/'), part += part != NULL)
    if (!strncmp(part, "..", 2) && (!part[2] || part[2] == '/')) return 1;
  return 0;
}

// Whether all entries are of the kinds that this file packs, in an order in which they can be made. It unpacks nothing
// else.
static int isSimple(void) {
  size_t at = 0;
  for (const struct entry *e; (e = entryAt(at)); at += blockBytes) {
    if (numberOf(e->sum, sizeof e->sum) != sumOf(e) || numberOf(e->size, sizeof e->size) || !strchr("0" "2" "5", e->type) || !e->type) return 0;
    if (e->name[sizeof e->name - 1] || e->link[sizeof e->link - 1] || e->prefix[0] || strncmp(e->name, "./", 2)) return 0;
    if (leadsUp(e->name) || (e->type == '2' && !e->link[0])) return 0;
  }
  for (; at < archived; at++)
    if (archive[at]) return 0;
  return 1;
}

// The directory that an entry is in, and its name there; a symbolic link on the way is an error.
static int parentOf(int root, const char *path, const char **name) {
  char parent[sizeof((struct entry *)0)->name];
  snprintf(parent, sizeof parent, "%s", path);
  for (size_t length = strlen(parent); length > 0 && parent[length - 1] == '/'; length--) parent[length - 1] = 0;
  char *slash = strrchr(parent, '/');
  if (!slash) return *name = ".", dup(root);
  *name = path + (slash - parent) + 1;
  *slash = 0;
  struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
  return (int)syscall(SYS_openat2, root, parent, &how, sizeof how);
}

static int make(int parent, const char *name, const struct entry *e, mode_t mode) {
  if (e->type == '5') return mkdirat(parent, name, mode) < 0 && errno != EEXIST ? -1 : 0;
  if (e->type == '2') return symlinkat(e->link, parent, name);
  int fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  return fd < 0 ? -1 : close(fd);
}

static int unpackEntry(int root, const struct entry *e, int onlyTime) {
  const char *rest;
  char name[sizeof e->name];
  int parent = parentOf(root, e->name, &rest), result = parent < 0 ? -1 : 0;
  if (result == 0) snprintf(name, sizeof name, "%s", rest), name[strcspn(name, "/")] = 0;
  mode_t mode = numberOf(e->mode, sizeof e->mode) & 07777;
  struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = numberOf(e->mtime, sizeof e->mtime)}};
  if (result == 0 && !onlyTime) {
    if (strcmp(name, ".")) result = make(parent, name, e, mode);
    if (result == 0) result = fchownat(parent, name, numberOf(e->uid, sizeof e->uid), numberOf(e->gid, sizeof e->gid), AT_SYMLINK_NOFOLLOW);
    if (result == 0 && e->type != '2') result = fchmodat(parent, name, mode, 0);
  }
  if (result == 0) result = utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW);
  if (parent >= 0) close(parent);
  return result;
}

static int unpack(const char *directory) {
  if (readArchive() < 0 || !isSimple()) return -1;
  int root = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return -1;
  // Making something in a directory changes the directory's time.
  for (int onlyTime = 0; onlyTime < 2; onlyTime++)
    for (size_t at = 0; entryAt(at); at += blockBytes)
      if ((!onlyTime || entryAt(at)->type == '5') && unpackEntry(root, entryAt(at), onlyTime) < 0) {
        dprintf(2, "%s: %s\n", entryAt(at)->name, strerror(errno));
        return 1;
      }
  return 0;
}

// CRIU's arguments: `--create` or `--extract`, options, `--directory DIRECTORY`. Source: criu/filesystems.c.
int tarInPlace(char *const argument[]) {
  const char *directory = NULL;
  for (int i = 0; argument[i]; i++)
    if (!strcmp(argument[i], "--directory")) directory = argument[i + 1];
  if (!directory || !argument[1]) return -1;
  if (!strcmp(argument[1], "--create")) return pack(directory);
  if (strcmp(argument[1], "--extract")) return -1;
  mode_t before = umask(0);
  int status = unpack(directory);
  umask(before);
  return status;
}
