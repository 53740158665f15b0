// Makes the checksums of a snapshot's memory images while CRIU writes them. They are nearly all of a checkpoint, which
// would otherwise be read and written out while everything stands still and waits for it. CRIU only ever appends to
// them.
#define _GNU_SOURCE
#include "snapshot-hash.h"
#include <sys/inotify.h>
#include <sys/stat.h>

// How much is handed to the disk at a time.
enum { writtenOutBytes = 8 << 20 };

static const char manifest[] = "manifest.json";

static int complain(const char *what, const char *problem) {
  dprintf(2, "%s: %s\n", what, problem);
  return 1;
}

struct followed *followedImage(struct images *all, const char *name) {
  struct followed *image = all->first;
  for (; image; image = image->next)
    if (!strcmp(image->name, name)) return image;
  if (strlen(name) >= sizeof image->name) return errno = ENAMETOOLONG, NULL;
  if (!(image = calloc(1, sizeof *image))) return NULL;
  strcpy(image->name, name);
  image->sum.hash = beginOfImage();
  if (!(image->states = open_memstream(&image->text, &image->length))) return free(image), NULL;
  image->next = all->first;
  return all->first = image;
}

void freeImages(struct images *all) {
  for (struct followed *next, *image = all->first; image; image = next) {
    next = image->next;
    fclose(image->states), free(image->text), free(image);
  }
}

// Takes in what an image has gained: whole pieces only, until it is complete.
int catchUp(const struct images *all, struct followed *image, int fd, int isComplete) {
  struct stat s;
  if (fstat(fd, &s) < 0) return -1;
  if (!S_ISREG(s.st_mode)) return errno = EINVAL, -1;
  off_t end = isComplete ? s.st_size : s.st_size - s.st_size % pieceBytes;
  // Writing out here only saves time: whoever asks for the whole snapshot on the disk writes out the rest.
  if (all->writeOut && end - image->writtenOut >= writtenOutBytes) {
    sync_file_range(fd, image->writtenOut, end - image->writtenOut, SYNC_FILE_RANGE_WRITE);
    image->writtenOut = end;
  }
  if (hashOn(&image->sum, fd, end, image->states) < 0) return -1;
  if (isComplete) endHash(&image->sum, image->states), fflush(image->states);
  return 0;
}

// Opens a file for a moment only: the kernel reports that a directory is gone once nobody has it open any more.
static int openIn(const char *path, const char *name) {
  int directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  int fd = directory < 0 ? -1 : openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), error = errno;
  if (directory >= 0) close(directory);
  return errno = error, fd;
}

static int takeIn(struct images *all, const char *path, const char *name) {
  struct followed *image = followedImage(all, name);
  int fd = image ? openIn(path, name) : -1;
  if (image && fd < 0 && errno == ENOENT) return 0; // the attempt is being removed
  int bad = fd < 0 || catchUp(all, image, fd, 0) < 0;
  if (bad) complain(name, strerror(errno));
  if (fd >= 0) close(fd);
  return bad;
}

enum seen { nothingYet, isThere, isGone };

static enum seen hasManifest(const char *path) {
  int fd = openIn(path, manifest);
  if (fd >= 0) close(fd);
  return fd < 0 ? nothingYet : isThere;
}

static enum seen lookAt(struct images *all, const char *path, const struct inotify_event *event, int *bad) {
  if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)) return isGone;
  // The kernel has dropped events, so this looks at the directory itself.
  if (event->mask & IN_Q_OVERFLOW) return hasManifest(path);
  if (!event->len) return nothingYet;
  if (!strcmp(event->name, manifest)) return isThere;
  if (isMemory(event->name)) *bad = takeIn(all, path, event->name);
  return nothingYet;
}

// follow DIRECTORY [write-out]: like `checksum`, but begins while the directory is still empty; ends when its manifest
// has its name and everything was taken in, or when the directory is gone.
int followDirectory(const char *path, int writeOut) {
  static char events[64 << 10] __attribute__((aligned(8)));
  static const uint32_t wanted = IN_MODIFY | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
  struct images all = {.writeOut = writeOut};
  int told = inotify_init1(IN_CLOEXEC), bad = 0;
  if (told < 0 || inotify_add_watch(told, path, wanted) < 0) return complain(path, strerror(errno));
  enum seen seen = hasManifest(path);
  while (!bad && seen == nothingYet) {
    ssize_t size = read(told, events, sizeof events);
    if (size <= 0) bad = complain(path, strerror(errno));
    for (ssize_t at = 0; at < size && !bad && seen == nothingYet;) {
      const struct inotify_event *event = (const void *)(events + at);
      seen = lookAt(&all, path, event, &bad);
      at += (ssize_t)(sizeof *event + event->len);
    }
  }
  close(told);
  if (!bad) bad = seen == isGone ? complain(path, "is gone") : sealFollowed(path, &all);
  freeImages(&all);
  return bad;
}
