// Removes a directory with all that is in it, while others may change it: with descriptors instead of paths, so that no
// depth is too great and no link put there meanwhile is followed.
#define _GNU_SOURCE
#include "remove-tree.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct level { char *name; dev_t device; ino_t inode; };
struct levels { struct level *level; size_t count, room; };

// How often a directory may be filled again before that is an error.
enum { refillsMax = 1000 };

// A deeper directory is moved up first. Each level that is open takes memory here and, with its names and inodes, in
// the kernel; whoever made the tree paid for one directory at a time.
enum { levelsMax = 1024 };

// musl has neither the call nor this flag of it (renameat2(2)).
enum { renameNoReplace = 1 };

static _Noreturn void removeFailed(const char *what) {
  dprintf(2, "%d %s: %s\n", errno, what, strerror(errno));
  _exit(1);
}

// Removes all entries that are not directories; answers the name of the first directory, or NULL. `fd` is a duplicate,
// which it closes.
static char *removeFiles(int fd) {
  DIR *directory = fdopendir(fd);
  if (!directory) removeFailed("open");
  char *found = NULL;
  for (struct dirent *entry; !found && (entry = readdir(directory));) {
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
    if (entry->d_type != DT_DIR && (!unlinkat(dirfd(directory), entry->d_name, 0) || errno == ENOENT)) continue;
    if (entry->d_type != DT_DIR && errno != EISDIR) removeFailed(entry->d_name);
    if (!(found = strdup(entry->d_name))) removeFailed("memory");
  }
  closedir(directory);
  return found;
}

static int enterDirectory(int parent, const char *name, struct levels *levels) {
  int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  struct stat facts;
  if (fstat(fd, &facts)) removeFailed("stat");
  if (levels->count == levels->room) {
    levels->room = levels->room ? levels->room * 2 : 64;
    if (!(levels->level = realloc(levels->level, levels->room * sizeof *levels->level))) removeFailed("memory");
  }
  char *kept = strdup(name);
  if (!kept) removeFailed("memory");
  levels->level[levels->count++] = (struct level){ kept, facts.st_dev, facts.st_ino };
  return fd;
}

// Goes up to the directory that this one was entered from, unless it was moved away meanwhile.
static int leaveDirectory(int fd, struct levels *levels) {
  int parent = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat facts;
  if (parent < 0 || fstat(parent, &facts)) removeFailed("..");
  struct level *above = &levels->level[levels->count - 2];
  if (facts.st_dev != above->device || facts.st_ino != above->inode) { errno = EAGAIN; removeFailed("moved meanwhile"); }
  close(fd);
  return parent;
}

// Moves a directory to the top of the tree, under a name that nothing there has.
static int moveUp(int parent, const char *name, int top) {
  static unsigned moved;
  char free[32];
  int failed;
  do snprintf(free, sizeof free, "moved-up-%u", moved++);
  while ((failed = syscall(SYS_renameat2, parent, name, top, free, renameNoReplace)) && errno == EEXIST);
  return failed;
}

int removeTree(int parent, const char *name) {
  struct levels levels = { 0 };
  int refills = 0;
  int fd = enterDirectory(parent, name, &levels);
  if (fd < 0) removeFailed(name);
  int top = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (top < 0) removeFailed("duplicate");
  for (;;) {
    int scanned = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (scanned < 0) removeFailed("open");
    char *below = removeFiles(scanned);
    if (below) {
      int isTooDeep = levels.count == levelsMax;
      int entered = isTooDeep ? moveUp(fd, below, top) : enterDirectory(fd, below, &levels);
      if (isTooDeep && !entered) { free(below); continue; }
      if (entered >= 0) { close(fd); fd = entered; }
      else if (errno != ENOENT && (errno != ENOTDIR || ++refills > refillsMax)) removeFailed(below);
      free(below);
      continue;
    }
    int isTop = levels.count == 1;
    struct level left = levels.level[levels.count - 1];
    int above = isTop ? parent : (fd = leaveDirectory(fd, &levels));
    levels.count--;
    if (!unlinkat(above, left.name, AT_REMOVEDIR) || errno == ENOENT) {
      free(left.name);
      if (isTop) return close(top), free(levels.level), 0;
    } else {
      if (errno != ENOTEMPTY || ++refills > refillsMax) removeFailed(left.name);
      // Somebody put something into it: removes that as well.
      if (isTop) levels.count++;
      else free(left.name);
    }
  }
}
