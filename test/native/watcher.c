// Enters the root DIRECTORY, watches PATH there by inotify, says so, and stays.
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

int main(int count, char **argv) {
  if (count != 3 || chroot(argv[1]) || chdir("/") || inotify_add_watch(inotify_init(), argv[2], IN_MODIFY) < 0) return perror("watcher"), 1;
  puts("watches");
  fflush(stdout);
  pause();
}
