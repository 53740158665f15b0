// Disks of sandboxes (sparse ext4 images on loop devices) and read-only layers.
#define _GNU_SOURCE
#include "helper.h"
#include <dirent.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>

// Copies only what holds data: an empty disk of any size costs about a megabyte.
static int copySparse(int from, int to, off_t size) {
  if (ioctl(to, FICLONE, from) == 0) return 0;
  if (ftruncate(to, size) < 0) return -1;
  for (off_t start = 0; (start = lseek(from, start, SEEK_DATA)) >= 0;) {
    off_t end = lseek(from, start, SEEK_HOLE), target = start;
    while (start < end) {
      ssize_t n = copy_file_range(from, &start, to, &target, end - start, 0);
      if (n <= 0) return -1;
    }
  }
  return errno == ENXIO ? 0 : -1; // ENXIO: no data behind `start`
}

// disk-create from to: copies an image to a path where there is none yet. It shares blocks where the file system can.
int opDiskCreate(struct request *r, struct failure *f) {
  int from = open(r->argument[0], O_RDONLY | O_CLOEXEC);
  if (from < 0) return fail(f, r->argument[0]);
  int to = open(r->argument[1], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (to < 0) return fail(f, r->argument[1]), close(from), -1;
  struct stat s;
  int result = fstat(from, &s) < 0 || copySparse(from, to, s.st_size) < 0 ? fail(f, "copy") : 0;
  close(from), close(to);
  if (result < 0) unlink(r->argument[1]);
  return result;
}

// The image that each loop device served when it was last seen. A host with hundreds of sandboxes has hundreds of
// devices: the first search looks at all of them; after that, the helper knows which ones it has attached.
static struct served { dev_t device; ino_t inode; } *served;
static int servedCount;

static void noteLoop(int number, dev_t device, ino_t inode) {
  if (number >= servedCount) {
    int count = number + 64;
    struct served *larger = realloc(served, count * sizeof *served);
    if (!larger) return; // this device is not found again, and the image gets another one
    memset(larger + servedCount, 0, (count - servedCount) * sizeof *served);
    served = larger, servedCount = count;
  }
  served[number] = (struct served){device, inode};
}

// Opens the device and reads what it serves; -1 if it serves nothing.
static int openLoop(int number, struct loop_info64 *info, char *device, size_t size) {
  snprintf(device, size, "/dev/loop%d", number);
  int fd = open(device, O_RDONLY | O_CLOEXEC);
  if (fd >= 0 && ioctl(fd, LOOP_GET_STATUS64, info) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

static void noteAllLoops(void) {
  char device[64];
  DIR *all = opendir("/sys/block");
  for (struct dirent *e; all && (e = readdir(all));) {
    int number, fd;
    struct loop_info64 info;
    if (sscanf(e->d_name, "loop%d", &number) != 1 || (fd = openLoop(number, &info, device, sizeof device)) < 0) continue;
    noteLoop(number, info.lo_device, info.lo_inode);
    close(fd);
  }
  if (all) closedir(all);
}

// Opens the loop device that already serves the image; -1 if there is none. A sandbox that runs on through a restart
// of the platform still holds its device.
static int findLoop(const char *image, char *device, size_t size) {
  static int looked;
  struct stat wanted;
  struct loop_info64 info;
  if (stat(image, &wanted) < 0) return -1;
  if (!looked++) noteAllLoops();
  for (int number = 0, fd; number < servedCount; number++) {
    if (served[number].inode != wanted.st_ino || served[number].device != wanted.st_dev) continue;
    if ((fd = openLoop(number, &info, device, size)) < 0) continue;
    if (info.lo_device == wanted.st_dev && info.lo_inode == wanted.st_ino) return fd;
    close(fd);
  }
  return -1;
}

// `access` is O_RDWR, or O_RDONLY for an image that must not change.
static int attachLoop(const char *image, int access, char *device, size_t size, struct failure *f) {
  int backing = open(image, access | O_CLOEXEC);
  if (backing < 0) return fail(f, image);
  int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
  if (control < 0) return fail(f, "/dev/loop-control"), close(backing), -1;
  int fd = -1;
  for (int attempt = 0; attempt < 64; attempt++) { // another process may take the free device first
    int number = ioctl(control, LOOP_CTL_GET_FREE);
    snprintf(device, size, "/dev/loop%d", number);
    fd = number < 0 ? -1 : open(device, O_RDWR | O_CLOEXEC);
    if (fd < 0) break;
    struct loop_config config = {.fd = backing, .info.lo_flags = LO_FLAGS_AUTOCLEAR};
    struct stat s;
    if (ioctl(fd, LOOP_CONFIGURE, &config) == 0) {
      if (fstat(backing, &s) == 0) noteLoop(number, s.st_dev, s.st_ino);
      break;
    }
    int error = errno;
    close(fd), fd = -1, errno = error;
    if (error != EBUSY) break;
  }
  if (fd < 0) fail(f, "loop device");
  close(control), close(backing);
  return fd;
}

// disk-mount image directory ["durable"]: mounts the image read-write on a directory, which is made if it is missing.
// Only a durable disk passes flushes on to the host's disk: other disks are synced explicitly at a pause.
int opDiskMount(struct request *r, struct failure *f) {
  int durable = r->arguments > 2 && !strcmp(r->argument[2], "durable");
  char device[64];
  int fd = findLoop(r->argument[0], device, sizeof device);
  if (fd < 0) fd = attachLoop(r->argument[0], O_RDWR, device, sizeof device, f);
  if (fd < 0) return -1;
  if (mkdir(r->argument[1], 0755) < 0 && errno != EEXIST) return fail(f, r->argument[1]), close(fd), -1;
  int result = mount(device, r->argument[1], "ext4", MS_NODEV | MS_NOSUID, durable ? "noinit_itable,discard" : "noinit_itable,nobarrier,discard");
  if (result < 0) fail(f, "mount ext4");
  close(fd); // the mount holds the device; if mounting failed, this releases it
  snprintf(r->result, sizeof r->result, "%s", device);
  return result;
}

// disk-used image: answers "yes" if a loop device serves the image, "no" otherwise.
int opDiskUsed(struct request *r, struct failure *f) {
  (void)f;
  char device[64];
  int fd = findLoop(r->argument[0], device, sizeof device);
  if (fd >= 0) close(fd);
  snprintf(r->result, sizeof r->result, "%s", fd >= 0 ? "yes" : "no");
  return 0;
}

// layer-mount type image directory: mounts a read-only image. Since Linux 6.12 `erofs` needs no loop device.
int opLayerMount(struct request *r, struct failure *f) {
  const char *type = r->argument[0], *image = r->argument[1], *target = r->argument[2];
  if (!olderKernel && mount(image, target, type, MS_RDONLY | MS_NODEV, "") == 0) return 0;
  if (!olderKernel && errno != ENOTBLK) return fail(f, image);
  char device[64];
  int fd = findLoop(image, device, sizeof device);
  if (fd < 0) fd = attachLoop(image, O_RDONLY, device, sizeof device, f);
  if (fd < 0) return -1;
  int result = mount(device, target, type, MS_RDONLY | MS_NODEV, "") < 0 ? fail(f, image) : 0;
  close(fd);
  return result;
}

// show directory at: makes a host directory visible elsewhere in the helper's namespace, read-only. The runtimes of
// sandboxes act as a mapped user there, who can't pass the directories above it. It is an overlay of one layer (and an
// empty one, because the kernel wants two): a bind mount's line in the sandboxes' mountinfo would tell them where the
// directory is on the host. The kernel shows an overlay's options as they were written, and numbers of descriptors
// reveal nothing.
int opShow(struct request *r, struct failure *f) {
  char options[96];
  int shown = open(r->argument[0], O_PATH | O_DIRECTORY | O_CLOEXEC), empty = open(scratchDirectory, O_PATH | O_DIRECTORY | O_CLOEXEC), result = -1;
  snprintf(options, sizeof options, "lowerdir=/proc/self/fd/%d:/proc/self/fd/%d", shown, empty);
  if (shown < 0 || empty < 0) fail(f, r->argument[0]);
  else result = mount("agent", r->argument[1], "overlay", MS_RDONLY | MS_NODEV | MS_NOSUID, options) < 0 ? fail(f, "overlay") : 0;
  if (shown >= 0) close(shown);
  if (empty >= 0) close(empty);
  return result;
}

// unmount directory: at once if nothing uses it, else as soon as nothing does. Removes the directory if it is empty
// then.
int opUnmount(struct request *r, struct failure *f) {
  const char *directory = r->argument[0];
  int result = umount2(directory, UMOUNT_NOFOLLOW);
  if (result < 0 && (errno == EINVAL || errno == ENOENT)) result = 0; // not mounted: the wanted state holds
  if (result < 0 && umount2(directory, MNT_DETACH | UMOUNT_NOFOLLOW) < 0) return fail(f, directory);
  rmdir(directory);
  return 0;
}
