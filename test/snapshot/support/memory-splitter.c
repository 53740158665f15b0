// A program that makes long lists for the bringer of its memory: on SIGUSR1, its threads give back every second page,
// and keep reporting that, so that nothing else gets done meanwhile; and it forks repeatedly. Usage: memory-splitter
// MIB
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { pageBytes = 4096, threads = 16 };

static char *memory;
static size_t part;
static atomic_int split;

static void *splitPart(void *own) {
  char *from = memory + (size_t)own * part;
  for (size_t at = 0; at < part; at += 2 * pageBytes) madvise(from + at, pageBytes, MADV_DONTNEED);
  split++;
  while (madvise(from, pageBytes, MADV_DONTNEED) == 0) {
  }
  return NULL;
}

int main(int count, char **arguments) {
  size_t bytes = (count > 1 ? strtoul(arguments[1], NULL, 10) : 1) << 20;
  sigset_t begin;
  sigemptyset(&begin);
  sigaddset(&begin, SIGUSR1);
  sigprocmask(SIG_BLOCK, &begin, NULL);
  part = bytes / threads;
  memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  memset(memory, 1, bytes);
  if (write(1, "ready\n", 6) < 0) return 1;
  int number;
  sigwait(&begin, &number);
  for (size_t i = 0; i < threads; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, splitPart, (void *)i)) return 1;
  }
  while (split < threads) usleep(1000);
  for (;;) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    if (child > 0) waitpid(child, NULL, 0);
  }
}
