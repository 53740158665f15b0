// A program that knows what each page of its memory holds, and plays with it: threads, each with areas of its own, map,
// unmap, move, grow, shrink, protect, give back, fork, and make the kernel read and write pages, as the seed decides,
// while a test may pause and resume it at any time. Usage: memory-player SEED. It takes a word from each connection to
// port 7000, and answers a line: `go`, `rest` (the threads stand still), `check` (examines everything), `guard`
// (whether there are guard regions), `swap` and `swapped` (see below). On SIGUSR1 it swaps, on SIGUSR2 it has a child
// that does nothing.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { pageBytes = 4096, words = pageBytes / 8, pagesMax = 1536, areasEach = 4, threads = 3, commonPages = 2048 };
enum { forksDeep = 2, historyLength = 10 };

// The expected content of a page: its stamp, or only zeros (0). `loose`: zeros are fine too. `wiped`: empty in a child;
// `unforked`: missing in a child.
struct page {
  uint64_t stamp;
  uint8_t mapped, prot, loose, wiped, unforked;
};

struct area {
  char *at;
  int count, isHeap;
  struct page page[pagesMax];
};

struct player {
  int number, depth;
  uint64_t random, stamps;
  struct area area[areasEach];
  const char *history[historyLength];
  int steps, file;
};

static struct player player[threads];
static struct area common[2]; // nobody changes them, all read them
static atomic_int goes, resting;
static char *failure; // children write it, too
static int seed;

static uint64_t draw(struct player *p) {
  p->random ^= p->random << 13, p->random ^= p->random >> 7, p->random ^= p->random << 17;
  return p->random * 2685821657736338717ULL >> 16;
}

static int below(struct player *p, int end) { return end <= 1 ? 0 : (int)(draw(p) % end); }

static void fail(struct player *p, const char *what, struct area *a, int page) {
  if (*failure) return;
  char text[900];
  int length = snprintf(text, sizeof text, "seed %d, thread %d, depth %d, step %d: %s, page %d of %d at %p (", seed,
                        p->number, p->depth, p->steps, what, page, a ? a->count : 0, a ? a->at + (size_t)page * pageBytes : NULL);
  if (a) {
    struct page *g = &a->page[page];
    uint64_t *held = (uint64_t *)(a->at + (size_t)page * pageBytes);
    length += snprintf(text + length, sizeof text - length, "stamp %llx, loose %d, wiped %d, holds %llx)",
                       (unsigned long long)g->stamp, g->loose, g->wiped,
                       g->mapped && g->prot & PROT_READ ? (unsigned long long)held[0] : 0);
  }
  for (int i = 0; i < historyLength; i++)
    if (p->history[(p->steps + i) % historyLength])
      length += snprintf(text + length, sizeof text - length, " %s", p->history[(p->steps + i) % historyLength]);
  strcpy(failure, text);
}

static char *placeOf(struct area *a, int page) { return a->at + (size_t)page * pageBytes; }

static uint64_t wordOf(uint64_t stamp, int i) { return stamp ? stamp + i * 0x9E3779B97F4A7C15ULL : 0; }

static int holds(const char *place, uint64_t stamp) {
  const uint64_t *word = (const uint64_t *)place;
  for (int i = 0; i < words; i++)
    if (word[i] != wordOf(stamp, i)) return 0;
  return 1;
}

static void fill(char *place, uint64_t stamp) {
  uint64_t *word = (uint64_t *)place;
  for (int i = 0; i < words; i++) word[i] = wordOf(stamp, i);
}

static uint64_t newStamp(struct player *p) { return ((uint64_t)(p->number + 1 + 8 * p->depth) << 56) | ++p->stamps << 8 | 1; }

static int isRight(const struct page *g, const char *place) {
  return holds(place, g->stamp) || (g->loose && holds(place, 0));
}

static void checkPage(struct player *p, struct area *a, int page, const char *what) {
  struct page *g = &a->page[page];
  if (g->mapped && g->prot & PROT_READ && !isRight(g, placeOf(a, page))) fail(p, what, a, page);
}

static void checkAll(struct player *p, const char *what) {
  for (int i = 0; i < areasEach; i++) {
    struct area *a = &p->area[i];
    for (int page = 0; page < a->count; page++) {
      if (a->page[page].mapped && !(a->page[page].prot & PROT_READ) && mprotect(placeOf(a, page), pageBytes, PROT_READ | PROT_WRITE) == 0)
        a->page[page].prot = PROT_READ | PROT_WRITE;
      checkPage(p, a, page, what);
    }
  }
}

// Mapped pages of one kind, from `*from` on. 0 if there are none.
static int runIn(struct player *p, struct area *a, int *from, int most) {
  *from = below(p, a->count);
  struct page first = a->page[*from];
  int length = 0;
  for (; first.mapped && *from + length < a->count && length < most; length++) {
    struct page *g = &a->page[*from + length];
    if (!g->mapped || g->prot != first.prot || g->wiped != first.wiped || g->unforked != first.unforked) break;
  }
  return length;
}

// ---- what it does

static void look(struct player *p, struct area *a) {
  int from = below(p, a->count), count = 1 + below(p, 48);
  for (int i = 0; i < count && from + i < a->count; i++) checkPage(p, a, from + i, "look");
  struct area *c = &common[below(p, 2)];
  checkPage(p, c, below(p, c->count), "look in common");
}

static void change(struct player *p, struct area *a) {
  int from, count = runIn(p, a, &from, 1 + below(p, 48));
  for (int i = 0; i < count && a->page[from].prot & PROT_WRITE; i++) {
    struct page *g = &a->page[from + i];
    if (!isRight(g, placeOf(a, from + i)) && below(p, 2)) fail(p, "before a change", a, from + i);
    g->stamp = newStamp(p), g->loose = 0;
    fill(placeOf(a, from + i), g->stamp);
  }
}

static void giveBack(struct player *p, struct area *a) {
  int from, count = runIn(p, a, &from, 1 + below(p, 300)), how = below(p, 3) ? MADV_DONTNEED : MADV_FREE;
  if (!count || madvise(placeOf(a, from), (size_t)count * pageBytes, how) < 0) return;
  for (int i = from; i < from + count; i++)
    if (how == MADV_FREE) a->page[i].loose = 1;
    else a->page[i].stamp = 0, a->page[i].loose = 0;
}

static void unmap(struct player *p, struct area *a) {
  int from, count = runIn(p, a, &from, 1 + below(p, 200));
  if (!count || a->isHeap) return;
  if (munmap(placeOf(a, from), (size_t)count * pageBytes) < 0) return fail(p, "munmap", a, from);
  for (int i = from; i < from + count; i++) a->page[i] = (struct page){0};
}

static void map(struct player *p, struct area *a) {
  int from = below(p, a->count), count = 1 + below(p, 128), over = below(p, 3) == 0;
  if (from + count > a->count) count = a->count - from;
  for (int i = 0; i < count; i++)
    if (!a->page[from + i].mapped != !over) count = i;
  if (!count || a->isHeap) return;
  char *place = mmap(placeOf(a, from), (size_t)count * pageBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | (over ? MAP_FIXED : MAP_FIXED_NOREPLACE), -1, 0);
  if (place == MAP_FAILED) return; // somebody else got it
  if (place != placeOf(a, from)) return fail(p, "mmap", a, from);
  for (int i = from; i < from + count; i++) a->page[i] = (struct page){.mapped = 1, .prot = PROT_READ | PROT_WRITE};
}

static void protect(struct player *p, struct area *a) {
  static const int prots[] = {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE};
  int from, count = runIn(p, a, &from, 1 + below(p, 64)), prot = prots[below(p, 4)];
  if (!count || mprotect(placeOf(a, from), (size_t)count * pageBytes, prot) < 0) return;
  for (int i = from; i < from + count; i++) a->page[i].prot = prot;
}

static int isThere(char *place) {
  unsigned char in;
  return mincore(place, pageBytes, &in) == 0;
}

// Moves all pages of an area to another place, in pieces, from the last or the first on.
static void move(struct player *p, struct area *a) {
  if (a->isHeap) return;
  size_t size = (size_t)a->count * pageBytes;
  char *to = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), *old = a->at;
  if (to == MAP_FAILED) return;
  int most = 1 + below(p, 256);
  for (int page = 0, count; page < a->count; page += count) {
    for (count = 0; page + count < a->count && count < most && a->page[page + count].mapped; count++) {
    }
    if (count == 0) munmap(to + (size_t)page * pageBytes, pageBytes), count = 1;
    else {
      char *from = old + (size_t)page * pageBytes, *place = to + (size_t)page * pageBytes;
      if (mremap(from, (size_t)count * pageBytes, (size_t)count * pageBytes, MREMAP_MAYMOVE | MREMAP_FIXED, place) != MAP_FAILED) continue;
      // More than one mapping: some of them may already have been moved.
      for (int i = 0; i < count; i++) {
        size_t at = (size_t)i * pageBytes;
        if (isThere(from + at) && mremap(from + at, pageBytes, pageBytes, MREMAP_MAYMOVE | MREMAP_FIXED, place + at) == MAP_FAILED)
          return fail(p, "mremap of a page", a, page + i);
      }
    }
  }
  a->at = to;
}

static void resize(struct player *p, struct area *a) {
  int to = a->count + (below(p, 2) ? 1 : -1) * below(p, 256);
  if (to < 64 || to > pagesMax) return;
  if (a->isHeap) {
    if (sbrk(0) != placeOf(a, a->count)) return fail(p, "the end of the heap", a, 0);
    if (sbrk((intptr_t)(to - a->count) * pageBytes) == (void *)-1) return;
  } else {
    for (int i = 0; i < a->count; i++)
      if (!a->page[i].mapped) return;
    char *place = mremap(a->at, (size_t)a->count * pageBytes, (size_t)to * pageBytes, MREMAP_MAYMOVE);
    if (place == MAP_FAILED) return; // more than one mapping
    a->at = place;
  }
  for (int i = a->count; i < to; i++)
    a->page[i] = a->isHeap ? (struct page){.mapped = 1, .prot = PROT_READ | PROT_WRITE} : (struct page){.mapped = 1, .prot = a->page[a->count - 1].prot, .wiped = a->page[a->count - 1].wiped, .unforked = a->page[a->count - 1].unforked};
  a->count = to;
}

// Moves pages, and leaves their place mapped.
static void takeOut(struct player *p, struct area *a) {
  int from, count = runIn(p, a, &from, 1 + below(p, 64));
  if (!count || a->isHeap) return;
  size_t size = (size_t)count * pageBytes;
  char *place = mremap(placeOf(a, from), size, size, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
  if (place == MAP_FAILED) return; // more than one mapping
  for (int i = 0; i < count; i++) {
    struct page *g = &a->page[from + i];
    if (g->prot & PROT_READ && !isRight(g, place + (size_t)i * pageBytes)) fail(p, "taken out", a, from + i);
    g->stamp = 0, g->loose = 0;
  }
  munmap(place, size);
}

static void advise(struct player *p, struct area *a) {
  static const int advices[] = {MADV_WILLNEED, MADV_COLD, MADV_PAGEOUT, MADV_HUGEPAGE, MADV_NOHUGEPAGE, 25 /* COLLAPSE */,
                                MADV_MERGEABLE, MADV_UNMERGEABLE, 22 /* POPULATE_READ */, 23 /* POPULATE_WRITE */, MADV_RANDOM,
                                MADV_NORMAL, MADV_DONTDUMP, MADV_DODUMP};
  int from, count = runIn(p, a, &from, 1 + below(p, 700));
  if (count) madvise(placeOf(a, from), (size_t)count * pageBytes, advices[below(p, sizeof advices / sizeof *advices)]);
}

static void unfork(struct player *p, struct area *a) {
  int from, count = runIn(p, a, &from, 1 + below(p, 64)), un = below(p, 2);
  if (!count || madvise(placeOf(a, from), (size_t)count * pageBytes, un ? MADV_DONTFORK : MADV_DOFORK) < 0) return;
  for (int i = from; i < from + count; i++) a->page[i].unforked = un;
}

// The kernel reads a page, and writes what it has read into another.
static void pass(struct player *p, struct area *a) {
  struct area *b = &p->area[below(p, areasEach)];
  int from = below(p, a->count), to = below(p, b->count), how = below(p, 4), ends[2];
  struct page *g = &a->page[from], *h = &b->page[to];
  if (!g->mapped || !(g->prot & PROT_READ) || !h->mapped || !(h->prot & PROT_WRITE) || g == h) return;
  char *source = placeOf(a, from), *target = placeOf(b, to);
  struct iovec out = {source, pageBytes}, in = {target, pageBytes};
  ssize_t length = -1;
  if (how == 0) length = process_vm_readv(getpid(), &in, 1, &out, 1, 0);
  else if (how == 1) {
    off_t place = (off_t)getpid() * pageBytes;
    length = pwrite(p->file, source, pageBytes, place);
    if (length == pageBytes) length = pread(p->file, target, pageBytes, place);
  } else if (pipe(ends) == 0) {
    length = how == 2 ? write(ends[1], source, pageBytes) : vmsplice(ends[1], &out, 1, 0);
    if (length == pageBytes) length = read(ends[0], target, pageBytes);
    close(ends[0]), close(ends[1]);
  }
  if (length != pageBytes) return fail(p, "a call for a page", a, from);
  int isZero = g->loose && holds(target, 0);
  h->stamp = isZero ? 0 : g->stamp, h->loose = 0;
  checkPage(p, b, to, "passed");
}

static void step(struct player *p);

static _Noreturn void beChild(struct player *p) {
  p->depth++, p->random += p->depth * 77777, p->stamps += 1 << 20;
  for (int i = 0; i < areasEach; i++)
    for (int page = 0; page < p->area[i].count; page++) {
      struct page *g = &p->area[i].page[page];
      if (g->unforked) *g = (struct page){0};
      else if (g->wiped) g->stamp = 0, g->loose = 0;
    }
  if (below(p, 3) == 0) checkAll(p, "child");
  for (int i = below(p, 30); i > 0 && !*failure; i--) step(p);
  if (below(p, 2)) checkAll(p, "child at its end");
  _exit(0);
}

static void forkOne(struct player *p, struct area *a) {
  (void)a;
  if (p->depth == forksDeep) return;
  pid_t pid = fork();
  if (pid == 0) beChild(p);
  if (pid < 0) return;
  for (int i = below(p, 10); i > 0; i--) step(p);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (status) fail(p, "a child ended by itself", NULL, status);
}

static void begin(struct player *p, struct area *a) {
  (void)a;
  pid_t pid = vfork();
  if (pid == 0) execl("/bin/true", "true", NULL), _exit(1);
  int status = 0;
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (pid > 0 && status) fail(p, "a program ended badly", NULL, status);
}

static void lock(struct player *p, struct area *a) {
  int from, count = runIn(p, a, &from, 1 + below(p, 16));
  if (!count || !(a->page[from].prot & PROT_READ) || mlock(placeOf(a, from), (size_t)count * pageBytes) < 0) return;
  for (int i = from; i < from + count; i++) checkPage(p, a, i, "locked");
  munlock(placeOf(a, from), (size_t)count * pageBytes);
}

// MADV_GUARD_INSTALL and MADV_GUARD_REMOVE, where programs may use them.
static void guard(struct player *p, struct area *a) {
  int from, count = runIn(p, a, &from, 1 + below(p, 16));
  if (!count || madvise(placeOf(a, from), (size_t)count * pageBytes, 102) < 0) return;
  for (int i = from; i < from + count; i++) a->page[i].stamp = 0, a->page[i].loose = 0;
  madvise(placeOf(a, from), (size_t)count * pageBytes, 103);
}

static void step(struct player *p) {
  static const struct {
    const char *name;
    void (*run)(struct player *, struct area *);
    int share;
  } kinds[] = {{"look", look, 30}, {"change", change, 12}, {"give", giveBack, 4}, {"unmap", unmap, 4}, {"map", map, 8},
               {"protect", protect, 6}, {"move", move, 4}, {"resize", resize, 6}, {"take", takeOut, 3}, {"advise", advise, 6},
               {"unfork", unfork, 2}, {"pass", pass, 8}, {"fork", forkOne, 1}, {"begin", begin, 1}, {"lock", lock, 2},
               {"guard", guard, 1}};
  int all = 0, at = 0;
  for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) all += kinds[i].share;
  for (int drawn = below(p, all); drawn >= kinds[at].share; at++) drawn -= kinds[at].share;
  p->history[p->steps++ % historyLength] = kinds[at].name;
  kinds[at].run(p, &p->area[below(p, areasEach)]);
}

static _Noreturn void *play(void *data) {
  struct player *p = data;
  for (;;) {
    atomic_fetch_add(&resting, 1);
    while (!atomic_load(&goes)) usleep(500);
    atomic_fetch_sub(&resting, 1);
    while (atomic_load(&goes) && !*failure) step(p);
    while (atomic_load(&goes)) usleep(500);
  }
}

// ---- the beginning

static void makeArea(struct player *p, struct area *a, int count) {
  a->count = count;
  a->at = a->isHeap ? sbrk((intptr_t)count * pageBytes) : mmap(NULL, (size_t)count * pageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < count; i++) {
    a->page[i] = (struct page){.mapped = 1, .prot = PROT_READ | PROT_WRITE, .stamp = newStamp(p)};
    fill(placeOf(a, i), a->page[i].stamp);
  }
}

static void beginPlayer(int number) {
  struct player *p = &player[number];
  char name[] = "/root/player-0";
  name[sizeof name - 2] += number;
  p->number = number, p->random = 88172645463325252ULL ^ ((uint64_t)seed << 20 | (number + 1) * 7919);
  p->file = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_DIRECT, 0600);
  if (p->file < 0) p->file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  for (int i = 0; i < areasEach; i++) {
    p->area[i].isHeap = number == 0 && i == 0;
    makeArea(p, &p->area[i], 600 + below(p, 600));
  }
  // A program says so at its beginning, if at all.
  struct area *a = &p->area[areasEach - 1];
  if (madvise(placeOf(a, 100), 300 * pageBytes, MADV_WIPEONFORK) == 0)
    for (int i = 100; i < 400; i++) a->page[i].wiped = 1;
}

// ---- two threads that move memory, one to where that of the other was

static char *swapTo;
static atomic_int mayMove;

static void letMove(int number) { atomic_store(&mayMove, number); }

static void *moveFirst(void *data) {
  struct area *a = data;
  size_t size = (size_t)a->count * pageBytes;
  while (!atomic_load(&mayMove)) usleep(500);
  return mremap(a->at, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, swapTo);
}

static void *moveSecond(void *data) {
  struct area *a = data;
  size_t size = (size_t)a[1].count * pageBytes;
  while (!atomic_load(&mayMove) || isThere(a[0].at)) usleep(500);
  return mremap(a[1].at, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, a[0].at);
}

static pthread_t swapping[2];

static void swap(struct area *a) {
  while (a[1].count > a[0].count) munmap(placeOf(&a[1], --a[1].count), pageBytes); // for want of room
  swapTo = mmap(NULL, (size_t)a->count * pageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  signal(SIGUSR1, letMove);
  pthread_create(&swapping[0], NULL, moveFirst, a);
  pthread_create(&swapping[1], NULL, moveSecond, a);
}

static void swapped(struct area *a) {
  void *at[2];
  for (int i = 0; i < 2; i++) pthread_join(swapping[i], &at[i]);
  a[0].at = at[0], a[1].at = at[1];
}

// ---- a child that does nothing

static void bearChild(int number) {
  (void)number;
  if (fork() != 0) return;
  for (;;) pause();
  (void)number;
}

// ----

static void rest(void) {
  atomic_store(&goes, 0);
  while (atomic_load(&resting) < threads) usleep(500);
}

static const char *answerTo(const char *word) {
  if (!strncmp(word, "go", 2)) atomic_store(&goes, 1);
  else if (!strncmp(word, "rest", 4)) rest();
  else if (!strncmp(word, "swapped", 7)) swapped(player[1].area);
  else if (!strncmp(word, "swap", 4)) swap(player[1].area);
  else if (!strncmp(word, "guard", 5)) return madvise(player[1].area[0].at, pageBytes, 102) < 0 ? strerror(errno) : "done";
  else if (!strncmp(word, "steps", 5)) {
    static char text[64];
    snprintf(text, sizeof text, "%d", player[0].steps + player[1].steps + player[2].steps);
    return text;
  } else if (!strncmp(word, "check", 5)) {
    rest();
    for (int i = 0; i < threads && !*failure; i++) checkAll(&player[i], "check");
    for (int i = 0; i < 2; i++)
      for (int page = 0; page < common[i].count && !*failure; page++) checkPage(&player[0], &common[i], page, "check of common");
  }
  return *failure ? failure : "right";
}

int main(int count, char **argument) {
  void *volatile first = malloc(1); // from now on malloc has its own part of the heap
  free(first);
  seed = count > 1 ? atoi(argument[1]) : 1;
  failure = mmap(NULL, pageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  signal(SIGUSR2, bearChild);
  for (int i = 0; i < threads; i++) beginPlayer(i);
  for (int i = 0; i < 2; i++) makeArea(&player[0], &common[i], commonPages / 2);
  pthread_t thread;
  for (int i = 0; i < threads; i++) pthread_create(&thread, NULL, play, &player[i]);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(7000), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 8) < 0) return 1;
  for (;;) {
    char word[64] = "";
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0 || read(fd, word, sizeof word - 1) < 0) continue;
    dprintf(fd, "%s\n", answerTo(word));
    close(fd);
  }
}
