// enter-root FOLDER PROGRAM [ARGUMENT…]: makes FOLDER, a mount point, the only root file system there is, and becomes PROGRAM in it.
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **argument) {
  if (count < 3 || chdir(argument[1])) return 1;
  // The old root lies on top of the new one until it is detached: it needs no folder (pivot_root(2)).
  if (syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) || chdir("/")) { perror("pivot_root"); return 1; }
  execv(argument[2], argument + 2);
  perror(argument[2]);
  return 1;
}
