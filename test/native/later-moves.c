// Threads move and unmap memory that arrives later, while its bringer hears of that in the order in which they report
// it: a thread makes its next report once it has a processor again. Whenever all reports were heard, the missing pages
// are where they belong. Usage: later-moves TIMES.
#define _GNU_SOURCE
#include <sys/ioctl.h>
static int answer(int fd, const void *asked);
#define ioctl(fd, request, asked) answer(fd, asked)
#include "../../native/snapshot-later.c"
#undef ioctl

enum { pages = 16, threads = 3, sayingsMax = 3, steps = 400, longest = 4 };

// The truth about a page: whether it is mapped, watched by the kernel, and which page of the image is missing there (0:
// none).
struct truth {
  int mapped, watched, missing;
};

// What a thread has done and has yet to report. Only the first report is out by then; the others follow one by one.
struct thread {
  struct uffd_msg saying[sayingsMax];
  int count, said, isHeard;
};

static struct truth truth[pages];
static struct thread thread[threads];
static int queue[threads], queued;
static struct thread *alone; // nobody else does anything until all was heard
static struct space space;
static uint64_t state;

static int below(int end) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (int)((state * 2685821657736338717ULL >> 33) % end);
}

static int isAllHeard(void) {
  for (int i = 0; i < threads; i++)
    if (thread[i].count > 0) return 0;
  return 1;
}

// The kernel's answer to a copy of nothing.
static int answer(int fd, const void *asked) {
  (void)fd, (void)asked;
  return errno = isAllHeard() ? EINVAL : EAGAIN, -1;
}

static uint64_t addressOf(int page) { return (uint64_t)(page + 16) * pageBytes; }

static void say(struct thread *t, int event, int from, int to, int count) {
  struct uffd_msg *message = &t->saying[t->count++];
  *message = (struct uffd_msg){.event = event};
  if (event == UFFD_EVENT_REMAP) message->arg.remap.from = addressOf(from), message->arg.remap.to = addressOf(to), message->arg.remap.len = (uint64_t)count * pageBytes;
  else message->arg.remove.start = addressOf(from), message->arg.remove.end = addressOf(from + count);
}

static int are(int from, int count, int mapped, int watched) {
  for (int page = from; page < from + count; page++)
    if (truth[page].mapped != mapped || truth[page].watched != watched) return 0;
  return 1;
}

static void moveSome(struct thread *t, int from, int count) {
  // The kernel does not report a move that keeps the old place (MREMAP_DONTUNMAP).
  int to = below(pages - count), keeps = below(8) == 0 && isAllHeard();
  if ((to < from + count && from < to + count) || !are(to, count, 0, 0)) return;
  for (int i = 0; i < count; i++) truth[to + i] = truth[from + i], truth[from + i] = (struct truth){keeps, keeps, 0};
  say(t, UFFD_EVENT_REMAP, from, to, count);
  if (keeps) alone = t;
  else say(t, UFFD_EVENT_UNMAP, from, 0, count);
}

static void act(struct thread *t) {
  int count = 1 + below(longest), from = below(pages - count), what = below(6);
  if (what == 0 && are(from, count, 0, 0))
    for (int i = 0; i < count; i++) truth[from + i].mapped = 1; // the kernel does not report this
  else if (what == 1 && are(from, count, 1, 0))
    for (int i = 0; i < count; i++) truth[from + i].mapped = 0;
  else if (are(from, count, 1, 1)) {
    if (what > 1) return moveSome(t, from, count);
    for (int i = 0; i < count; i++) truth[from + i] = (struct truth){0};
    say(t, UFFD_EVENT_UNMAP, from, 0, count);
  }
}

static void goOn(int number) {
  struct thread *t = &thread[number];
  int wasIdle = t->count == 0;
  if (alone && alone != t) return;
  if (wasIdle) act(t);
  if (t->count == 0 || (!wasIdle && !t->isHeard)) return;
  if (!wasIdle && ++t->said == t->count) {
    *t = (struct thread){0};
    return;
  }
  t->isHeard = 0;
  queue[queued++] = number;
}

static void hear(void) {
  if (queued == 0) return;
  struct thread *t = &thread[queue[0]];
  memmove(queue, queue + 1, --queued * sizeof *queue);
  takeChange(NULL, &space, &t->saying[t->said]);
  t->isHeard = 1;
  // Nothing is left to report: the kernel no longer counts it.
  if (t->said == t->count - 1) *t = (struct thread){0};
}

static int offsetAt(uint64_t address) {
  int at = pieceBehind(&space.missing, address);
  if (at == space.missing.count || space.missing.piece[at].from > address) return 0;
  struct piece p = space.missing.piece[at];
  return (int)((p.offset + (address - p.from)) / pageBytes);
}

static int isRight(void) {
  for (int page = 0; page < pages; page++)
    if (offsetAt(addressOf(page)) != truth[page].missing) return dprintf(2, "page %d: %d is missing, not %d\n", page, offsetAt(addressOf(page)), truth[page].missing), 0;
  return 1;
}

static void begin(uint64_t seed) {
  state = seed * 0x9E3779B97F4A7C15ULL + 1;
  letGo(&space);
  space = (struct space){.faults = 1000};
  memset(truth, 0, sizeof truth), memset(thread, 0, sizeof thread), queued = 0, alone = NULL;
  for (int page = 0; page < pages; page++) {
    int isWatched = below(3) > 0;
    truth[page] = (struct truth){isWatched, isWatched, isWatched ? page + 1 : 0};
    if (isWatched) addPiece(&space.areas, (struct piece){addressOf(page), addressOf(page + 1), 0});
    if (isWatched) addPiece(&space.missing, (struct piece){addressOf(page), addressOf(page + 1), (uint64_t)(page + 1) * pageBytes});
  }
}

int main(int count, char **argument) {
  int times = count > 1 ? atoi(argument[1]) : 1, compared = 0;
  for (int time = 1; time <= times; time++) {
    begin(time);
    for (int step = 0, waits = 0; step < steps; step++) {
      if (below(20) == 0) waits = below(threads + 1); // for a processor
      int number = below(threads);
      if (below(2)) hear();
      else if (number != waits) goOn(number);
      if (!isAllHeard()) continue;
      alone = NULL;
      settle(&space);
      if (!isRight()) return dprintf(2, "seed %d, step %d\n", time, step), 1;
      compared++;
    }
  }
  printf("%d\n", compared);
  space.faults = -1;
  return letGo(&space), 0;
}
