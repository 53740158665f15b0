// Enters the root DIRECTORY, watches each PATH there with two inotify instances, reports that, and stays.
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

int main(int count, char **argv) {
  if (count < 3 || chroot(argv[1]) || chdir("/")) return perror("watcher"), 1;
  int instances[] = {inotify_init(), inotify_init()};
  for (int i = 2; i < count; i++)
    for (int j = 0; j < 2; j++)
      if (inotify_add_watch(instances[j], argv[i], IN_MODIFY) < 0) return perror(argv[i]), 1;
  puts("watches");
  fflush(stdout);
  pause();
}
