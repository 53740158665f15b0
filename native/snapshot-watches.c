// Paths of a sandbox's inotify watches. CRIU needs a path for each; the kernel shows only an inode and a file handle,
// and handles of an overlay can't be opened. But each contains the handle of the file in its layer, which can be
// opened. The paths are written as CRIU's inode map ("irmap-cache" image), which it trusts after checking them.
#define _GNU_SOURCE
#include "helper.h"
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

enum {
  watchesMax = 16384, // distinct ones of one sandbox; a file watcher of a large project has a few thousand
  handleBytesMax = 64,
  treeEntriesMax = 2000000,
  overlayHandle = 0xf8, // OVL_FILEID_V1, fs/overlayfs/overlayfs.h
  overlayMagic = 0xfb,
  fromUpper = 4, // OVL_FH_FLAG_PATH_UPPER
};

struct watch {
  uint64_t device, inode;
  pid_t pid;
  int fd, descriptor, found;
  unsigned type, length;
  uint8_t handle[handleBytesMax];
};

static struct watch watches[watchesMax];
static int watchCount;
static int rootFd;        // of the sandbox
static uint64_t rootDevice; // as the kernel writes it: major << 20 | minor

static int complain(const char *what) {
  dprintf(2, "%s: %s\n", what, strerror(errno));
  return 1;
}

static uint64_t kernelDevice(dev_t device) { return (uint64_t)major(device) << 20 | minor(device); }

// ---- finding the watches

static void addWatch(pid_t pid, int fd, const char *line) {
  struct watch w = {.pid = pid, .fd = fd};
  unsigned long inode, device;
  char hex[2 * handleBytesMax + 1];
  int n = sscanf(line, "inotify wd:%x ino:%lx sdev:%lx mask:%*x ignored_mask:%*x fhandle-bytes:%x fhandle-type:%x f_handle:%128[0-9a-f]",
                 (unsigned *)&w.descriptor, &inode, &device, &w.length, &w.type, hex);
  if (n < 3 || device != rootDevice || watchCount == watchesMax) return; // CRIU finds those of other file systems itself
  w.inode = inode, w.device = device;
  if (n < 6 || w.length > handleBytesMax || strlen(hex) < 2 * w.length) w.length = 0;
  for (unsigned i = 0; i < w.length; i++) sscanf(hex + 2 * i, "%2hhx", &w.handle[i]);
  watches[watchCount++] = w;
}

static void readWatches(pid_t pid, int fd) {
  char path[64], line[512];
  snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", pid, fd);
  FILE *file = fopen(path, "re");
  while (file && fgets(line, sizeof line, file)) if (!strncmp(line, "inotify ", 8)) addWatch(pid, fd, line);
  if (file) fclose(file);
}

static void readProcess(pid_t pid) {
  char path[64], target[64];
  snprintf(path, sizeof path, "/proc/%d/fd", pid);
  DIR *all = opendir(path);
  for (struct dirent *e; all && (e = readdir(all));) {
    ssize_t n = readlinkat(dirfd(all), e->d_name, target, sizeof target - 1);
    if (n > 0 && (target[n] = 0, !strcmp(target, "anon_inode:inotify"))) readWatches(pid, atoi(e->d_name));
  }
  if (all) closedir(all);
}

// ---- from a handle to a path

// Whether `path` (without the leading slash) is the watched inode, as CRIU will check it.
static int isAt(const struct watch *w, const char *path) {
  struct stat s;
  return fstatat(rootFd, *path ? path : ".", &s, AT_SYMLINK_NOFOLLOW | (*path ? 0 : AT_EMPTY_PATH)) == 0 && s.st_ino == w->inode && kernelDevice(s.st_dev) == w->device;
}

// Finds the path below `base` of the file that a handle of `base`'s file system names.
static int openHandle(const char *base, const char *below, unsigned type, const uint8_t *id, unsigned length, char *path) {
  struct {
    struct file_handle head;
    uint8_t id[handleBytesMax];
  } handle = {.head = {.handle_bytes = length, .handle_type = type}};
  memcpy(handle.head.f_handle, id, length);
  int mount = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int fd = mount < 0 ? -1 : (int)syscall(SYS_open_by_handle_at, mount, &handle, O_PATH | O_CLOEXEC);
  if (mount >= 0) close(mount);
  if (fd < 0) return -1;
  char link[64], text[PATH_MAX], prefix[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return -1;
  text[n] = 0;
  int size = snprintf(prefix, sizeof prefix, "%s%s", base, below);
  if (strncmp(text, prefix, size) || (text[size] && text[size] != '/')) return -1;
  snprintf(path, PATH_MAX, "%s", text[size] ? text + size + 1 : "");
  return 0;
}

static int resolve(const struct watch *w, const char *disk, char **layers, char *path) {
  const uint8_t *h = w->handle;
  if (w->type != overlayHandle || w->length <= 24 || h[4] != overlayMagic) return -1;
  const uint8_t *id = h + 24;
  unsigned length = w->length - 24, type = h[7];
  if (h[6] & fromUpper) return openHandle(disk, "/upper", type, id, length, path) == 0 && isAt(w, path) ? 0 : -1;
  for (; *layers; layers++)
    if (openHandle(*layers, "", type, id, length, path) == 0 && isAt(w, path)) return 0;
  return -1;
}

// ---- writing the image

static FILE *image;

static void putVarint(uint8_t *message, int *length, uint64_t value) {
  for (; value > 127; value >>= 7) message[(*length)++] = value | 128;
  message[(*length)++] = value;
}

// irmap_cache_entry of CRIU's images/fh.proto: dev = 1, inode = 2, path = 3.
static void writeEntry(const struct watch *w, const char *path) {
  uint8_t message[PATH_MAX + 64];
  int length = 0, size = strlen(path) + 1;
  message[length++] = 0x08, putVarint(message, &length, w->device);
  message[length++] = 0x10, putVarint(message, &length, w->inode);
  message[length++] = 0x1a, putVarint(message, &length, size);
  length += snprintf((char *)message + length, sizeof message - length, "/%s", path);
  uint32_t head = length;
  fwrite(&head, sizeof head, 1, image), fwrite(message, length, 1, image);
}

static int byInode(const void *a, const void *b) {
  uint64_t first = ((const struct watch *)a)->inode, second = ((const struct watch *)b)->inode;
  return first < second ? -1 : first > second;
}

// Finds the first of the sorted watches of an inode, or where it would be. The scan looks up every entry of a tree.
static int firstOf(uint64_t inode) {
  int from = 0, to = watchCount;
  while (from < to) {
    int middle = (from + to) / 2;
    if (watches[middle].inode < inode) from = middle + 1;
    else to = middle;
  }
  return from;
}

static void markFound(uint64_t inode) {
  for (int i = firstOf(inode); i < watchCount && watches[i].inode == inode; i++) watches[i].found = 1;
}

// ---- the slow way, for files that were renamed since their layer was made

static int entriesSeen;
static char scanned[PATH_MAX]; // one for all levels: a tree may be deeper than a stack with a path for each

// `length` is how many bytes of `scanned` are the directory's path; 0: the root.
static void scan(int parent, const char *name, size_t length) {
  int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *all = fd < 0 ? NULL : fdopendir(fd);
  for (struct dirent *e; all && entriesSeen < treeEntriesMax && (e = readdir(all));) {
    struct stat s;
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
    entriesSeen++;
    size_t nameBytes = strlen(e->d_name), at = length ? length + 1 : 0;
    if (at + nameBytes >= sizeof scanned) continue;
    if (length) scanned[length] = '/';
    memcpy(scanned + at, e->d_name, nameBytes + 1);
    if (fstatat(fd, e->d_name, &s, AT_SYMLINK_NOFOLLOW) < 0 || kernelDevice(s.st_dev) != rootDevice) continue;
    int first = firstOf(s.st_ino);
    if (first < watchCount && watches[first].inode == s.st_ino && !watches[first].found) writeEntry(&watches[first], scanned), markFound(s.st_ino);
    if (S_ISDIR(s.st_mode)) scan(fd, e->d_name, at + nameBytes);
  }
  if (all) closedir(all);
}

// A watch of a file without a name could not be set again. Its owner gets the event of its end, as when the file is
// really gone.
static int endWatch(const struct watch *w) {
  int process = syscall(SYS_pidfd_open, w->pid, 0), fd = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, w->fd, 0);
  int result = fd < 0 ? -1 : inotify_rm_watch(fd, w->descriptor);
  if (fd >= 0) close(fd);
  if (process >= 0) close(process);
  return result;
}

// watch-paths PID GROUPFILE IMAGE DISK LAYER...: the processes of GROUPFILE must be frozen; PID is the first of them.
int watchPaths(const char *pid, const char *groupFile, const char *imagePath, char **disk) {
  char path[PATH_MAX];
  struct stat s;
  snprintf(path, sizeof path, "/proc/%s/root", pid);
  if ((rootFd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0 || fstat(rootFd, &s) < 0) return complain(path);
  rootDevice = kernelDevice(s.st_dev);
  FILE *group = fopen(groupFile, "re");
  if (!group) return complain(groupFile);
  for (int process; fscanf(group, "%d", &process) == 1;) readProcess(process);
  fclose(group);
  if (watchCount == 0) return 0;
  qsort(watches, watchCount, sizeof *watches, byInode);
  if (!(image = fopen(imagePath, "we"))) return complain(imagePath);
  const uint32_t magic[2] = {0x55105940, 0x57004059}; // IMG_SERVICE_MAGIC, IRMAP_CACHE_MAGIC
  fwrite(magic, sizeof magic, 1, image);
  int missing = 0;
  for (int i = 0; i < watchCount; i++) {
    if (watches[i].found) continue;
    if (resolve(&watches[i], disk[0], disk + 1, path) == 0) writeEntry(&watches[i], path), markFound(watches[i].inode);
    else missing++;
  }
  int root = missing ? openat(rootFd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  if (root >= 0) scan(root, ".", 0);
  for (int i = 0; i < watchCount; i++)
    if (!watches[i].found && endWatch(&watches[i]) < 0) complain("a watch of a deleted file");
  return fclose(image) ? complain(imagePath) : 0;
}
