// A read-only view of layers put together, which shows what a sandbox made from them would see.
#define _GNU_SOURCE
#include "helper.h"
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/syscall.h>

// Before Linux 6.8 overlay takes no layers one by one. Named by descriptors, any number of them fits into one page.
static int viewOfPaths(struct request *r, struct failure *f) {
  char text[4096];
  int opened[layersMax], layers = 0, result = 0;
  int length = snprintf(text, sizeof text, "redirect_dir=follow,lowerdir=");
  for (int i = r->arguments - 1; i >= 1 && result == 0; i--, layers++) {
    opened[layers] = open(r->argument[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (opened[layers] < 0) result = fail(f, r->argument[i]);
    else length += snprintf(text + length, sizeof text - length, "/proc/self/fd/%d%s", opened[layers], i > 1 ? ":" : "");
  }
  if (result == 0 && mount("overlay", r->argument[0], "overlay", MS_RDONLY | MS_NODEV | MS_NOSUID, text) < 0) result = fail(f, "overlay by paths");
  while (layers-- > 0) if (opened[layers] >= 0) close(opened[layers]);
  return result;
}

// view target layer layer...: an overlay of two or more layers, lowest first, without a place to write to.
int opView(struct request *r, struct failure *f) {
  if (r->arguments < 3 || r->arguments - 1 > layersMax) return errno = EINVAL, fail(f, "layers");
  if (olderKernel) return viewOfPaths(r, f);
  int fs = syscall(SYS_fsopen, "overlay", FSOPEN_CLOEXEC), view = -1;
  if (fs < 0) return fail(f, "fsopen");
  int bad = 0;
  for (int i = r->arguments - 1; i >= 1 && !bad; i--) bad = syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "lowerdir+", r->argument[i], 0);
  bad = bad || syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "redirect_dir", "follow", 0);
  bad = bad || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
  if (!bad) view = syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | MOUNT_ATTR_RDONLY);
  int result = -1;
  if (view < 0 && errno == EINVAL) result = viewOfPaths(r, f);
  else if (view < 0) fail(f, "overlay");
  else result = syscall(SYS_move_mount, view, "", AT_FDCWD, r->argument[0], MOVE_MOUNT_F_EMPTY_PATH) < 0 ? fail(f, r->argument[0]) : 0;
  if (view >= 0) close(view);
  close(fs);
  return result;
}
