// Root file systems of sandboxes: an overlay of read-only layers and the sandbox's own disk, put in place while the
// sandbox's processes run.
#define _GNU_SOURCE
#include "helper.h"
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

// Directories of a standby sandbox that stay in its new root. src/protocol/template/platform-directories.ts has the
// same.
static const char *const kept[] = {".agent", "dev", "proc", "sys"};
enum { keptCount = sizeof kept / sizeof *kept };

static int openNamespace(const char *pid, const char *kind) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/ns/%s", pid, kind);
  return open(path, O_RDONLY | O_CLOEXEC);
}

int openIdmapped(const char *path, int userns, uint64_t attributes) {
  int tree = syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (tree < 0) return -1;
  struct mount_attr a = {.attr_set = MOUNT_ATTR_IDMAP | attributes, .userns_fd = userns};
  if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &a, sizeof a) == 0) return tree;
  int error = errno;
  close(tree);
  return errno = error, -1;
}

// Overlay checks and creates files with the credentials of whoever makes the mount. Host root is not mapped into the
// idmapped layers, and an overlay made by it would silently be read-only; so the sandbox's root makes it.
static int actAs(uint32_t id) {
  setfsuid(id), setfsgid(id);
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2];
  if (syscall(SYS_capget, &header, data) < 0) return -1;
  data[0].effective = data[0].permitted, data[1].effective = data[1].permitted; // setfsuid dropped them
  return syscall(SYS_capset, &header, data);
}

// The parts of an overlay, opened: idmapped copies of the mounts, and the two directories of the disk.
struct parts {
  int low[layersMax], layers; // lowest first
  int disk, upper, work;
  uint32_t base; // host ID of the sandbox's root
};

static void closeParts(struct parts *p) {
  for (int i = 0; i < p->layers; i++) close(p->low[i]);
  for (int *fd = (int[]){p->disk, p->upper, p->work, -2}; *fd != -2; fd++)
    if (*fd >= 0) close(*fd);
}

static int openParts(struct parts *p, char **layer, int layers, const char *disk, int userns, struct failure *f) {
  p->layers = 0, p->disk = p->upper = p->work = -1;
  if (layers < 1 || layers > layersMax) return errno = EINVAL, fail(f, "layers");
  *p = (struct parts){.upper = -1, .work = -1, .disk = openIdmapped(disk, userns, 0)};
  if (p->disk < 0) return fail(f, disk);
  for (; p->layers < layers; p->layers++)
    if ((p->low[p->layers] = openIdmapped(layer[p->layers], userns, 0)) < 0) return fail(f, layer[p->layers]);
  p->upper = openat(p->disk, "upper", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  p->work = openat(p->disk, "work", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return p->upper < 0 || p->work < 0 ? fail(f, "upper and work") : 0;
}

// Since Linux 6.13 overlay takes detached mounts, as descriptors. Older kernels fail with the errors of
// `lacksDescriptors`.
static int overlayOfDescriptors(struct parts *p, struct failure *f) {
  int mountFd = -1, fs = syscall(SYS_fsopen, "overlay", FSOPEN_CLOEXEC);
  if (fs < 0) return fail(f, "fsopen");
  int bad = 0;
  for (int i = p->layers - 1; i >= 0 && !bad; i--) bad = syscall(SYS_fsconfig, fs, FSCONFIG_SET_FD, "lowerdir+", NULL, p->low[i]);
  bad = bad || syscall(SYS_fsconfig, fs, FSCONFIG_SET_FD, "upperdir", NULL, p->upper);
  bad = bad || syscall(SYS_fsconfig, fs, FSCONFIG_SET_FD, "workdir", NULL, p->work);
  // Keeps a layer's directory in one piece when it is renamed; otherwise the rename fails with EXDEV.
  bad = bad || syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "redirect_dir", "on", 0);
  // Gives all files one device and stable inode numbers, whichever layer they are in: file watches are found again by
  // them.
  bad = bad || syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "xino", "on", 0);
  bad = bad || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
  if (bad || (mountFd = syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV)) < 0) {
    char text[256] = "";
    int error = errno;
    ssize_t n = read(fs, text, sizeof text - 1);
    errno = error;
    fail(f, n > 0 ? (text[n] = 0, text) : "overlay");
  }
  close(fs);
  return mountFd;
}

// Older kernels take only mounts of the caller's own namespace, by path. So the copies are attached for a moment, all
// over one scratch directory, and named by their descriptors: that text fits into one page for any number of layers.
static int overlayOfPaths(struct parts *p, struct failure *f) {
  char text[4096];
  int length = snprintf(text, sizeof text, "redirect_dir=on,xino=on,upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d,lowerdir=", p->upper, p->work);
  int attached = 0, overlay = -1;
  for (int i = p->layers - 1; i >= 0; i--)
    length += snprintf(text + length, sizeof text - length, "/proc/self/fd/%d%s", p->low[i], i ? ":" : "");
  actAs(0);
  for (int i = -1; i < p->layers; i++, attached++)
    if (syscall(SYS_move_mount, i < 0 ? p->disk : p->low[i], "", AT_FDCWD, scratchDirectory, MOVE_MOUNT_F_EMPTY_PATH) < 0) {
      fail(f, "attach a layer");
      goto done;
    }
  actAs(p->base);
  int mounted = mount("overlay", scratchDirectory, "overlay", MS_NODEV, text), error = errno;
  actAs(0);
  errno = error;
  if (mounted < 0) fail(f, "overlay by paths");
  else {
    attached++;
    overlay = syscall(SYS_open_tree, AT_FDCWD, scratchDirectory, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (overlay < 0) fail(f, "open_tree");
  }
done:
  while (attached-- > 0) umount2(scratchDirectory, MNT_DETACH);
  return overlay;
}

// EOPNOTSUPP on 6.1, whose overlay takes only text; EBADF on 6.12, which takes no descriptor of a place (O_PATH), and
// those of detached mounts are such; EINVAL if the parameter takes no descriptor.
static int lacksDescriptors(int error) { return error == EINVAL || error == EOPNOTSUPP || error == EBADF; }

// A detached overlay mount: layers lowest first, `disk` holds upper/ and work/.
int makeOverlay(char **layer, int layers, const char *disk, int userns, uint32_t base, struct failure *f) {
  struct parts parts;
  int overlay = -1;
  if (openParts(&parts, layer, layers, disk, userns, f) == 0) {
    parts.base = base;
    if (actAs(base) < 0) fail(f, "credentials");
    else {
      overlay = olderKernel ? (f->error = EBADF, -1) : overlayOfDescriptors(&parts, f);
      if (overlay < 0 && lacksDescriptors(f->error)) overlay = overlayOfPaths(&parts, f);
    }
    actAs(0);
  }
  closeParts(&parts);
  return overlay;
}

// Opens a directory beneath `root` without following any link, and makes it if it is missing: the root holds whatever
// a stranger's template brought.
static int openBeneath(int root, const char *path, uint32_t base) {
  struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS};
  char part[512];
  if (strlen(path) >= sizeof part) return errno = ENAMETOOLONG, -1;
  int fd = syscall(SYS_openat2, root, path, &how, sizeof how);
  if (fd >= 0 || errno != ENOENT) return fd;
  for (const char *slash = path; slash; ) {
    slash = strchr(slash, '/');
    snprintf(part, sizeof part, "%.*s", slash ? (int)(slash - path) : (int)strlen(path), path);
    if (slash) slash++;
    char *last = strrchr(part, '/');
    int parent = root, opened = -1;
    if (last) {
      *last = 0;
      if ((opened = parent = syscall(SYS_openat2, root, part, &how, sizeof how)) < 0) return -1;
    }
    actAs(base);
    int made = mkdirat(parent, last ? last + 1 : part, 0755), error = errno;
    actAs(0);
    if (opened >= 0) close(opened);
    if (made < 0 && error != EEXIST) return errno = error, -1;
  }
  return syscall(SYS_openat2, root, path, &how, sizeof how);
}

// Answers the directory of the platform that is a link or a file in the root; NULL if there is none.
static const char *takenPlace(int root, uint32_t base) {
  for (int i = 0; i < keptCount; i++) {
    int target = openBeneath(root, kept[i], base);
    if (target < 0 && (errno == ELOOP || errno == ENOTDIR)) return kept[i];
    if (target >= 0) close(target);
  }
  return NULL;
}

static int moveKept(int root, uint32_t base, struct failure *f) {
  for (int i = 0; i < keptCount; i++) {
    char from[32];
    snprintf(from, sizeof from, "/%s", kept[i]);
    int target = openBeneath(root, kept[i], base);
    if (target < 0) return fail(f, kept[i]);
    int source = open(from, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int moved = source < 0 ? -1 : syscall(SYS_move_mount, source, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
    if (moved < 0) fail(f, from);
    close(source), close(target);
    if (moved < 0) return -1;
  }
  return 0;
}

// In the sandbox's mount namespace: the overlay becomes the root of every process there.
static int switchRoot(int overlay, uint32_t base, struct failure *f) {
  if (syscall(SYS_move_mount, overlay, "", AT_FDCWD, "/newroot", MOVE_MOUNT_F_EMPTY_PATH) < 0) return fail(f, "move_mount");
  if (moveKept(overlay, base, f) < 0) return -1;
  if (fchdir(overlay) < 0) return fail(f, "fchdir");
  if (syscall(SYS_pivot_root, ".", ".") < 0) return fail(f, "pivot_root");
  if (umount2(".", MNT_DETACH) < 0) return fail(f, "old root");
  return 0;
}

// adopt-root pid base disk layers layer...: gives a standby sandbox its root file system. Answers the directory of the
// platform that is a link or a file in the layers, or nothing: such a root is refused. Without a root, or after a
// failure, the sandbox is unusable and must be killed.
int opAdoptRoot(struct request *r, struct failure *f) {
  uint32_t base = strtoul(r->argument[1], NULL, 10);
  int layers = atoi(r->argument[3]), result = -1, overlay = -1;
  if (layers != r->arguments - 4) return errno = EINVAL, fail(f, "layers");
  int own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
  int userns = openNamespace(r->argument[0], "user"), mounts = openNamespace(r->argument[0], "mnt");
  if (userns < 0 || mounts < 0 || own < 0) fail(f, "namespaces");
  else if ((overlay = makeOverlay(r->argument + 4, layers, r->argument[2], userns, base, f)) >= 0) {
    const char *taken = takenPlace(overlay, base);
    if (taken) result = 0, snprintf(r->result, sizeof r->result, "%s", taken);
    else if (setns(mounts, CLONE_NEWNS) < 0) fail(f, "setns");
    else {
      result = switchRoot(overlay, base, f);
      if (setns(own, CLONE_NEWNS) < 0) exit(3); // never go on in a stranger's namespace
    }
  }
  if (overlay >= 0) close(overlay);
  if (userns >= 0) close(userns);
  if (mounts >= 0) close(mounts);
  close(own);
  return result;
}

// size-shared-memory pid bytes: limits what a standby sandbox, which has no root yet, may keep in /dev/shm.
int opSizeSharedMemory(struct request *r, struct failure *f) {
  char options[48];
  int own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC), mounts = openNamespace(r->argument[0], "mnt"), result = -1;
  snprintf(options, sizeof options, "size=%llu", strtoull(r->argument[1], NULL, 10));
  if (own < 0 || mounts < 0) fail(f, "namespaces");
  else if (setns(mounts, CLONE_NEWNS) < 0) fail(f, "setns");
  else {
    result = mount(NULL, "/dev/shm", NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, options) < 0 ? fail(f, "/dev/shm") : 0;
    if (setns(own, CLONE_NEWNS) < 0) exit(3);
  }
  if (mounts >= 0) close(mounts);
  if (own >= 0) close(own);
  return result;
}

// name-host pid name: sets the name of the machine that the kernel tells a sandbox's programs.
int opNameHost(struct request *r, struct failure *f) {
  int own = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC), names = openNamespace(r->argument[0], "uts"), result = -1;
  if (own < 0 || names < 0) fail(f, "namespaces");
  else if (setns(names, CLONE_NEWUTS) < 0) fail(f, "setns");
  else {
    result = sethostname(r->argument[1], strlen(r->argument[1])) < 0 ? fail(f, r->argument[1]) : 0;
    if (setns(own, CLONE_NEWUTS) < 0) exit(3);
  }
  if (names >= 0) close(names);
  if (own >= 0) close(own);
  return result;
}

// bind pid base source target ["ro"]: shows a host directory inside a running sandbox, with owners shifted.
int opBind(struct request *r, struct failure *f) {
  uint32_t base = strtoul(r->argument[1], NULL, 10);
  int readOnly = r->arguments > 4 && !strcmp(r->argument[4], "ro");
  int own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC), tree = -1, result = -1;
  int userns = openNamespace(r->argument[0], "user"), mounts = openNamespace(r->argument[0], "mnt");
  uint64_t attributes = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | (readOnly ? MOUNT_ATTR_RDONLY : 0);
  if (own < 0 || userns < 0 || mounts < 0) fail(f, "namespaces");
  else if ((tree = openIdmapped(r->argument[2], userns, attributes)) < 0) fail(f, r->argument[2]);
  else if (setns(mounts, CLONE_NEWNS) < 0) fail(f, "setns");
  else {
    int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int target = openBeneath(root, r->argument[3] + (r->argument[3][0] == '/'), base);
    if (target < 0 || syscall(SYS_move_mount, tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
      fail(f, r->argument[3]);
    else result = 0;
    if (target >= 0) close(target);
    close(root);
    if (setns(own, CLONE_NEWNS) < 0) exit(3);
  }
  if (tree >= 0) close(tree);
  if (userns >= 0) close(userns);
  if (mounts >= 0) close(mounts);
  if (own >= 0) close(own);
  return result;
}
