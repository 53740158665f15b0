// Files that processes of a sandbox have open or mapped and that have no name: a checkpoint copies those on the disk,
// and goes through those in memory page by page. This is a program of its own because the kernel lets nobody see what a
// process has mapped while it forks or maps, which at its memory limit lasts for minutes. Whoever looks then waits.
#define _GNU_SOURCE
#include "helper.h"
#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>

enum {
  pieceBytes = 1 << 16,
  // The kernel writes a path as up to four times as many characters.
  lineBytesMax = 4 * PATH_MAX + 256,
  // More than twice the files that are looked at at most.
  knownMax = 1 << 18,
  sectorBytes = 512, // unit of st_blocks, stat(2)
};

// How the kernel marks the path of a file that has none any more, proc_pid_fd(5).
static const char deleted[] = " (deleted)";
// Files in memory that have no other name, as the kernel shows them: memfd_create(2), shmat(2), shared mmap(2). Those in
// /dev/shm count as memory too.
static const char *const memoryFiles[] = {"/memfd:", "/SYSV", "/dev/zero", NULL};
static const char sharedMemory[] = "/dev/shm/";

// How much may still be looked at and read; below zero: there was more.
static long looksLeft, bytesLeft;
static uint64_t diskBytes, memoryBytes;

// A sandbox makes files in memory of any length.
static void add(uint64_t *sum, uint64_t bytes) {
  if (__builtin_add_overflow(*sum, bytes, sum)) *sum = UINT64_MAX;
}

// Files that were seen, and the lines of a process that were: a file counts once, and has a line for each mapping.
static struct file { uint64_t device, inode, owner; } known[knownMax];

static int isNew(uint64_t device, uint64_t inode, uint64_t owner) {
  uint64_t place = (device * 31 + inode) * 0x9e3779b97f4a7c15 + owner;
  for (size_t i = place >> 46;; i = (i + 1) % knownMax) {
    struct file *k = &known[i];
    if (k->owner == owner && k->device == device && k->inode == inode) return 0;
    if (k->owner == 0) return *k = (struct file){device, inode, owner}, 1;
  }
}

static int isInMemoryAlone(const char *path) {
  for (const char *const *start = memoryFiles; *start; start++)
    if (!strncmp(path, *start, strlen(*start))) return 1;
  return 0;
}

static int isDeleted(const char *path, size_t length) {
  size_t mark = sizeof deleted - 1;
  return path[0] == '/' && length >= mark && !strcmp(path + length - mark, deleted);
}

static int complain(const char *what) {
  dprintf(2, "%s: %s\n", what, strerror(errno));
  return 1;
}

// A file that is closed meanwhile does not count.
static void count(int directory, const char *name, const char *path) {
  enum { ofFiles = 1 };
  struct stat s;
  if (fstatat(directory, name, &s, 0) || !isNew(s.st_dev, s.st_ino, ofFiles)) return;
  if (isInMemoryAlone(path)) add(&memoryBytes, s.st_size);
  else if (strncmp(path, sharedMemory, sizeof sharedMemory - 1) && S_ISREG(s.st_mode) && s.st_nlink == 0) add(&diskBytes, s.st_blocks * sectorBytes);
}

static int openIn(const char *pid, const char *name, int flags) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/%s", pid, name);
  return open(path, flags | O_CLOEXEC);
}

static void lookAtOpen(const char *pid) {
  int fd = openIn(pid, "fd", O_RDONLY | O_DIRECTORY);
  DIR *all = fd < 0 ? NULL : fdopendir(fd);
  char path[PATH_MAX + sizeof deleted];
  for (struct dirent *e; all && (e = readdir(all));) {
    if (e->d_name[0] == '.') continue;
    if (--looksLeft < 0) break;
    ssize_t length = readlinkat(fd, e->d_name, path, sizeof path - 1);
    if (length > 0 && (path[length] = 0, isDeleted(path, length))) count(fd, e->d_name, path);
  }
  if (all) closedir(all);
}

// A line of proc_pid_maps(5): FROM-TO FLAGS OFFSET DEVICE INODE PATH.
static void lookAtLine(int links, uint64_t owner, const char *line, size_t length) {
  unsigned long from, to, inode;
  unsigned major, minor;
  int at = 0;
  const char *path = memchr(line, '/', length);
  if (!path || !isDeleted(path, line + length - path)) return;
  if (sscanf(line, "%lx-%lx %*s %*x %x:%x %lu %n", &from, &to, &major, &minor, &inode, &at) != 5 || line + at != path) return;
  if (!isNew((uint64_t)major << 32 | minor, inode, owner) || --looksLeft < 0) return;
  char link[64];
  snprintf(link, sizeof link, "%lx-%lx", from, to);
  count(links, link, path);
}

static void lookAtLines(int maps, int links, uint64_t owner) {
  static char text[lineBytesMax + pieceBytes + 1];
  size_t held = 0;
  for (ssize_t n; (n = read(maps, text + held, pieceBytes)) > 0;) {
    if ((bytesLeft -= n) < 0) return;
    char *line = text, *limit = text + held + n;
    for (char *end; (end = memchr(line, '\n', limit - line)); line = end + 1) *end = 0, lookAtLine(links, owner, line, end - line);
    held = limit - line;
    if (held > lineBytesMax || looksLeft < 0) return; // the kernel writes no such line
    memmove(text, line, held);
  }
}

static void lookAtMapped(const char *pid) {
  int maps = openIn(pid, "maps", O_RDONLY), links = openIn(pid, "map_files", O_RDONLY | O_DIRECTORY);
  if (maps >= 0) lookAtLines(maps, links, strtoul(pid, NULL, 10) + 1);
  if (maps >= 0) close(maps);
  if (links >= 0) close(links);
}

// Looks at the processes that a line on standard input names, and prints the bytes of files on the disk, those in memory
// with their holes, and whether there was more than `looks` files, or `bytes` of lists of mapped ones.
int lookForNameless(const char *looks, const char *bytes) {
  looksLeft = strtol(looks, NULL, 10), bytesLeft = strtol(bytes, NULL, 10);
  // Each look makes two entries at most, and there must be a free one.
  if (looksLeft >= knownMax / 2) return errno = E2BIG, complain(looks);
  char pid[16];
  while (looksLeft >= 0 && bytesLeft >= 0 && scanf("%15[0-9]%*[ \n]", pid) == 1) {
    lookAtOpen(pid);
    if (looksLeft >= 0) lookAtMapped(pid);
  }
  printf("%llu %llu %d\n", (unsigned long long)diskBytes, (unsigned long long)memoryBytes, looksLeft < 0 || bytesLeft < 0);
  return fflush(stdout) ? 1 : 0;
}
