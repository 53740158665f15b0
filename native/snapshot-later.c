// Memory that comes while its sandbox already runs. CRIU puts the processes together without it and hands over a
// userfaultfd for each (userfaultfd(2)): through it the kernel says which page a process waits for, and takes pages.
// Pages that somebody waits for come first. All others come after a rest, in the order of their addresses, one chunk
// for every few pages that are waited for: so however many those are, the rest of the memory comes too. Each piece of
// an image is compared with its checksum before a process gets it.
//
// Two processes hold the descriptors. If there were only one and it were killed, the kernel would let the processes go
// on with zeros where nothing has come. With two, a process that touches such a page waits, and the second one ends
// the sandbox.
#define _GNU_SOURCE
#include "snapshot-hash.h"
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

// CRIU chose the name and the last word. Source: criu/uffd.c.
#define SOCKET_NAME "lazy-pages.socket"
enum { finishedWord = 0x52535446 };
enum { pageBytes = 4096, aroundFault = 64 << 10, chunkBytes = 256 << 10 };
// A sandbox has fewer threads that wait for a page.
enum { waitersMax = 1 << 13 };
enum { forgottenLookMs = 1000 };
// A sandbox that has just come back is asked something, and others of a fork are still being put together: during the
// rest, those have the processors.
enum { restMs = 1000 };
enum { deadlineS = 600, processorS = 120, noMemoryTimes = 200, pauseNs = 5 * 1000 * 1000 };
// A sandbox can cut its memory into as many pieces as it has pages, and each fork brings a copy of the list.
enum { dataBytesMax = 64 << 20 };
enum { endingLooksMax = 3000, processesBytesMax = 1 << 16, lineBytesMax = 4200 };

// Pages that have not come yet: where they belong, and where they are in their file.
struct piece {
  uint64_t from, to, offset;
};

// An image with pages, and its checksums.
struct image {
  char name[64];
  int fd;
  const struct sums *sums;
  struct image *next;
};

// In the order of their addresses, without overlaps; only `left` holds ranges as they were reported.
struct list {
  struct piece *piece;
  int count, room;
};

// The memory of one process. `faults` is -1 until CRIU has handed it over, and again when all memory is there. The
// kernel watches `areas`. For the other lists see "Moves".
struct space {
  int pid, faults;
  const struct image *image;
  struct list missing, areas, left, moved, owed, past;
  struct space *next;
};

struct plan {
  int group, directory;
  struct sums *sums;
  struct image *images;
  struct space *spaces;
};

static int complainOf(const char *what) {
  dprintf(2, "%s: %s\n", what, strerror(errno));
  return 1;
}

static _Noreturn void giveUp(const char *what) {
  _exit(complainOf(what));
}

// ---- lists of pieces

static void insertPiece(struct list *l, int at, struct piece p) {
  if (l->count == l->room) {
    l->room = l->room ? l->room * 2 : 64;
    l->piece = reallocarray(l->piece, l->room, sizeof *l->piece);
    if (!l->piece) giveUp("memory");
  }
  memmove(l->piece + at + 1, l->piece + at, (l->count - at) * sizeof *l->piece);
  l->piece[at] = p, l->count++;
}

// The first piece that ends behind an address.
static int pieceBehind(const struct list *l, uint64_t address) {
  int low = 0, high = l->count;
  while (low < high) {
    int middle = (low + high) / 2;
    if (l->piece[middle].to <= address) low = middle + 1;
    else high = middle;
  }
  return low;
}

static int hasSome(const struct list *l, uint64_t from, uint64_t to) {
  int at = pieceBehind(l, from);
  return at < l->count && l->piece[at].from < to;
}

static void dropRange(struct list *l, uint64_t from, uint64_t to) {
  int at = pieceBehind(l, from), end = at;
  if (at == l->count || l->piece[at].from >= to) return;
  struct piece first = l->piece[at], last = first;
  for (; end < l->count && l->piece[end].from < to; end++) last = l->piece[end];
  memmove(l->piece + at, l->piece + end, (l->count - end) * sizeof *l->piece);
  l->count -= end - at;
  if (last.to > to) insertPiece(l, at, (struct piece){to, last.to, last.offset + (to - last.from)});
  if (first.from < from) insertPiece(l, at, (struct piece){first.from, from, first.offset});
}

static void addPiece(struct list *l, struct piece p) {
  dropRange(l, p.from, p.to);
  insertPiece(l, pieceBehind(l, p.from), p);
}

// Moves what is in a range to another list, at addresses that are higher by `by`.
static void takeRange(struct list *l, uint64_t from, uint64_t to, uint64_t by, struct list *taken) {
  for (int at = pieceBehind(l, from); at < l->count && l->piece[at].from < to; at++) {
    struct piece p = l->piece[at];
    uint64_t begin = p.from > from ? p.from : from, end = p.to < to ? p.to : to;
    addPiece(taken, (struct piece){begin + by, end + by, p.offset + (begin - p.from)});
  }
  dropRange(l, from, to);
}

static void copyList(struct list *to, const struct list *from) {
  if (from->count == 0) return;
  to->piece = reallocarray(NULL, from->count, sizeof *to->piece);
  if (!to->piece) giveUp("memory");
  memcpy(to->piece, from->piece, from->count * sizeof *to->piece);
  to->count = to->room = from->count;
}

static void freeList(struct list *l) {
  free(l->piece);
  *l = (struct list){0};
}

// ---- pages

// The process has ended, or has all of its memory: from now on the kernel itself gives it pages.
static void letGo(struct space *s) {
  if (s->faults >= 0) close(s->faults);
  s->faults = -1;
  freeList(&s->missing), freeList(&s->areas), freeList(&s->left), freeList(&s->moved), freeList(&s->owed), freeList(&s->past);
}

// The sandbox has used up its memory: the kernel is ending one of its processes.
static void waitForRoom(int *times, const char *what) {
  if (errno != ENOMEM || ++*times == noMemoryTimes) giveUp(what);
  nanosleep(&(struct timespec){.tv_nsec = pauseNs}, NULL);
}

static void wake(struct space *s, uint64_t from, uint64_t length) {
  struct uffdio_range range = {from, length};
  if (ioctl(s->faults, UFFDIO_WAKE, &range) < 0) errno = 0;
}

// The page is new, so the snapshot has nothing of it. This is all that the kernel says of memory that has grown in
// place.
static void giveZeros(struct space *s, uint64_t address) {
  struct uffdio_zeropage zero = {.range = {address, pageBytes}};
  for (int times = 0; ioctl(s->faults, UFFDIO_ZEROPAGE, &zero) < 0;) {
    if (errno == EAGAIN || errno == ENOENT || errno == EEXIST) return;
    if (errno == ESRCH) return letGo(s);
    waitForRoom(&times, "UFFDIO_ZEROPAGE");
  }
  struct list *areas = &s->areas;
  int at = pieceBehind(areas, address);
  if (at < areas->count && areas->piece[at].from <= address) return;
  if (at > 0 && areas->piece[at - 1].to == address) areas->piece[at - 1].to += pageBytes;
  else insertPiece(areas, at, (struct piece){address, address + pageBytes, 0});
}

// Puts pages where they belong. Answers how many bytes are done: fewer than asked for if the range is more than one
// mapping by now; 0: none for now.
static uint64_t givePages(struct space *s, uint64_t to, const uint8_t *bytes, uint64_t length) {
  for (int times = 0, missing = 0;;) {
    struct uffdio_copy copy = {.dst = to, .src = (uint64_t)(uintptr_t)bytes, .len = length};
    if (ioctl(s->faults, UFFDIO_COPY, &copy) == 0) return length;
    if (copy.copy > 0) return copy.copy;
    if (errno == EAGAIN) return 0;
    if (errno == ESRCH) return letGo(s), 0;
    if (errno == ENOENT && length == pageBytes) {
      // The process has dropped the page, or has moved it this very moment: then the kernel has yet to report the new
      // place, and answers EAGAIN until that report was read.
      if (missing++) return length;
    } else if (errno == ENOENT) length = length / 2 / pageBytes * pageBytes;
    else waitForRoom(&times, "UFFDIO_COPY");
  }
}

// Whether the kernel has reported all changes. It answers EAGAIN before it looks at the range, which is empty.
static int isQuiet(const struct space *s) {
  struct uffdio_copy none = {0};
  return ioctl(s->faults, UFFDIO_COPY, &none) < 0 && errno == EINVAL;
}

static void settle(struct space *s) {
  if (s->moved.count + s->left.count == 0 || s->faults < 0 || !isQuiet(s)) return;
  freeList(&s->left), freeList(&s->moved), freeList(&s->owed), freeList(&s->past);
}

// The piece of an image that was read last, already verified.
static struct {
  const struct image *image;
  uint64_t number;
  uint8_t bytes[pieceBytes] __attribute__((aligned(64)));
} held;

static void hold(const struct image *image, uint64_t number) {
  if (held.image == image && held.number == number) return;
  if (readPiece(image->sums, image->fd, number, held.bytes) < 0) giveUp(image->name);
  held.image = image, held.number = number;
}

static void bring(struct space *s, struct piece p, uint64_t from, uint64_t length) {
  uint64_t offset = p.offset + (from - p.from), within = offset % pieceBytes;
  if (length > pieceBytes - within) length = pieceBytes - within;
  hold(s->image, offset / pieceBytes);
  uint64_t done = givePages(s, from, held.bytes + within, length);
  if (done > 0 && s->faults >= 0) dropRange(&s->missing, from, from + done);
}

static void bringNext(struct space *s) {
  settle(s);
  if (s->missing.count == 0) return;
  struct piece p = s->missing.piece[0];
  bring(s, p, p.from, p.to - p.from < chunkBytes ? p.to - p.from : chunkBytes);
}

static uint64_t pieceNumber(struct piece p, uint64_t address) { return (p.offset + (address - p.from)) / pieceBytes; }

// Brings the pages around one that somebody waits for.
static void bringAround(struct space *s, uint64_t address) {
  if (!hasSome(&s->missing, address, address + 1)) return giveZeros(s, address);
  struct piece p = s->missing.piece[pieceBehind(&s->missing, address)];
  uint64_t from = address / aroundFault * aroundFault, to = from + aroundFault;
  if (from < p.from) from = p.from;
  // If the pages before this one are in another piece of the image, leaves them out.
  if (pieceNumber(p, from) != pieceNumber(p, address)) from = address;
  bring(s, p, from, (to < p.to ? to : p.to) - from);
}

// ---- events

static int events;

static void follow(struct space *s, int fd) {
  s->faults = fd;
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = s};
  if (epoll_ctl(events, EPOLL_CTL_ADD, fd, &event) < 0) giveUp("epoll");
}

static int readMessage(struct space *s, struct uffd_msg *message) {
  if (s->faults < 0) return 0;
  ssize_t length = read(s->faults, message, sizeof *message);
  if (length < 0 && errno != EAGAIN && errno != EINTR) giveUp("userfaultfd");
  return length == sizeof *message;
}

// Moves. The kernel reports a change of memory after it was made, and each thread's changes on their own: one thread
// may have moved memory to where another had unmapped or moved some, and the kernel may report the former first.
// (Before a move it unmaps what was at the new place, and after it what is at the old one, and waits each time until
// that report was read, however long the thread then waits for a processor.) `left` is where memory was moved from,
// until the kernel reports it unmapped: that report is no news, and is not about memory that came there since. `moved`
// is where memory was moved to since all was quiet. If the kernel watched something there before, whose end it had not
// reported, that range is `owed`, and what was missing of it is in `past`: the next report about it is not about what
// is there now.

// Forgets a range, except for what was moved there.
static void forgetBetween(struct space *s, uint64_t from, uint64_t to) {
  for (int i = pieceBehind(&s->moved, from); from < to; i++) {
    uint64_t end = i < s->moved.count && s->moved.piece[i].from < to ? s->moved.piece[i].from : to;
    if (end > from) dropRange(&s->missing, from, end), dropRange(&s->areas, from, end);
    from = i < s->moved.count ? s->moved.piece[i].to : to;
  }
}

// Other memory is in this range now.
static void takeOwed(struct space *s, uint64_t from, uint64_t to) {
  struct list owed = {0};
  takeRange(&s->areas, from, to, 0, &owed);
  for (int i = 0; i < s->left.count; i++) dropRange(&owed, s->left.piece[i].from, s->left.piece[i].to);
  for (int i = 0; i < owed.count; i++) {
    takeRange(&s->missing, owed.piece[i].from, owed.piece[i].to, 0, &s->past);
    addPiece(&s->owed, owed.piece[i]);
  }
  dropRange(&s->missing, from, to);
  freeList(&owed);
}

static void takeMove(struct space *s, uint64_t from, uint64_t to, uint64_t length) {
  struct list pieces = {0};
  if (hasSome(&s->owed, from, from + length)) {
    struct list now = {0};
    for (int i = 0; i < s->moved.count; i++) takeRange(&s->missing, s->moved.piece[i].from, s->moved.piece[i].to, 0, &now);
    takeRange(&s->missing, from, from + length, to - from, &pieces);
    takeRange(&s->past, from, from + length, to - from, &pieces);
    for (int i = 0; i < now.count; i++) addPiece(&s->missing, now.piece[i]);
    freeList(&now);
    dropRange(&s->owed, from, from + length);
    forgetBetween(s, from, from + length);
  } else {
    takeRange(&s->missing, from, from + length, to - from, &pieces);
    dropRange(&s->moved, from, from + length);
  }
  insertPiece(&s->left, s->left.count, (struct piece){from, from + length, 0});
  takeOwed(s, to, to + length);
  for (int i = 0; i < pieces.count; i++) addPiece(&s->missing, pieces.piece[i]);
  freeList(&pieces);
  addPiece(&s->areas, (struct piece){to, to + length, 0});
  addPiece(&s->moved, (struct piece){to, to + length, 0});
}

static void forget(struct space *s, uint64_t from, uint64_t to) {
  if (hasSome(&s->owed, from, to)) {
    dropRange(&s->owed, from, to), dropRange(&s->past, from, to);
    forgetBetween(s, from, to);
  } else dropRange(&s->missing, from, to), dropRange(&s->areas, from, to), dropRange(&s->moved, from, to);
}

// Whether an unmapping is the one that follows a move.
static int wasLeft(struct space *s, uint64_t from, uint64_t to) {
  for (int i = 0; i < s->left.count; i++) {
    if (s->left.piece[i].from != from || s->left.piece[i].to != to) continue;
    s->left.piece[i] = s->left.piece[--s->left.count];
    return 1;
  }
  return 0;
}

static void takeUnmap(struct space *s, uint64_t from, uint64_t to) {
  if (wasLeft(s, from, to)) forgetBetween(s, from, to);
  else forget(s, from, to);
}

// A process that forks has a second memory from now on, in which the same pages are missing. Pages that nobody waits
// for come to it last: most such processes have ended by then, or begun another program.
static void followChild(struct plan *plan, const struct space *parent, int fd) {
  struct space *s = calloc(1, sizeof *s), **last = &plan->spaces;
  if (!s) giveUp("memory");
  *s = (struct space){.image = parent->image};
  copyList(&s->missing, &parent->missing), copyList(&s->areas, &parent->areas), copyList(&s->moved, &parent->moved);
  // The child was born after the changes that its parent has yet to report.
  for (int i = 0; i < parent->left.count; i++) forgetBetween(s, parent->left.piece[i].from, parent->left.piece[i].to);
  freeList(&s->moved);
  while (*last) last = &(*last)->next;
  *last = s;
  follow(s, fd);
}

static void takeChange(struct plan *plan, struct space *s, const struct uffd_msg *message) {
  uint64_t from = message->arg.remove.start, to = message->arg.remove.end;
  if (message->event == UFFD_EVENT_FORK) followChild(plan, s, (int)message->arg.fork.ufd);
  else if (message->event == UFFD_EVENT_REMAP) takeMove(s, message->arg.remap.from, message->arg.remap.to, message->arg.remap.len);
  else if (message->event == UFFD_EVENT_REMOVE) dropRange(&s->missing, from, to);
  else if (message->event == UFFD_EVENT_UNMAP) takeUnmap(s, from, to);
  else giveUp("an unknown event");
}

// The kernel reports pages that are waited for before it reports changes, and takes no page while a report of a change
// is unread. So waiting threads are woken once all was read: if a page could not be given, the kernel reports it
// again.
static void takeMessages(struct plan *plan, struct space *s) {
  static uint64_t waited[waitersMax];
  int waiters = 0;
  struct uffd_msg message;
  while (waiters < waitersMax && readMessage(s, &message)) {
    if (message.event != UFFD_EVENT_PAGEFAULT) takeChange(plan, s, &message);
    else bringAround(s, waited[waiters++] = message.arg.pagefault.address / pageBytes * pageBytes);
  }
  settle(s);
  for (int i = 0; i < waiters && s->faults >= 0; i++) wake(s, waited[i], pageBytes);
}

// ---- CRIU

static int receiveDescriptor(int from) {
  char byte, room[CMSG_SPACE(sizeof(int))];
  struct iovec io = {&byte, 1};
  struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  int fd = -1;
  if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (header && header->cmsg_type == SCM_RIGHTS) memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return fd;
}

// CRIU names a process by its number in the sandbox (negative: it has ended), and hands over its descriptor. Answers
// whether that was the last process. CRIU has initialised the descriptors, with all events.
static int takeProcess(struct plan *plan, int from) {
  int pid;
  if (recv(from, &pid, sizeof pid, MSG_WAITALL) != sizeof pid) giveUp("CRIU has ended");
  if (pid == finishedWord) return 1;
  if (pid < 0) return 0;
  int fd = receiveDescriptor(from);
  if (fd < 0) giveUp("CRIU has ended");
  for (struct space *s = plan->spaces; s; s = s->next)
    if (s->pid == pid && s->faults < 0) return follow(s, fd), 0;
  struct space *s = calloc(1, sizeof *s); // none of its memory comes later
  if (!s) giveUp("memory");
  *s = (struct space){.pid = pid, .next = plan->spaces};
  plan->spaces = s;
  follow(s, fd);
  return 0;
}

// Lets go of processes none of whose memory is missing.
static void letEmptyGo(struct plan *plan) {
  for (struct space *s = plan->spaces; s; s = s->next)
    if (s->missing.count == 0) letGo(s);
}

static struct space *nextToBring(struct plan *plan) {
  for (struct space *s = plan->spaces; s; s = s->next) {
    // Pages of an `owed` range may be missing where that range was moved to.
    if ((s->missing.count > 0 || s->past.count > 0) && s->faults >= 0) return s;
    letGo(s);
  }
  return NULL;
}

// If the platform was killed before it started CRIU, nobody connects; the next platform removes the plan.
static void waitForCriu(int listener, int file) {
  struct pollfd waits = {.fd = listener, .events = POLLIN};
  struct stat facts;
  while (poll(&waits, 1, forgottenLookMs) == 0)
    if (fstat(file, &facts) == 0 && facts.st_nlink == 0) _exit(0);
}

// The rest: for this long after CRIU's work, only pages come that somebody waits for. It ends early if somebody opens
// the plan, to wait for all of the memory, or removes it, because the sandbox has ended. There is none if the machine
// has too many watches.
static struct {
  int watch;
  int64_t untilMs;
} rest;

static int64_t nowMs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int restLeftMs(void) {
  int64_t left = rest.untilMs - nowMs();
  return left > 0 ? (int)left : 0;
}

static void beginRest(const char *file) {
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = &rest};
  rest.watch = inotify_init1(IN_CLOEXEC);
  if (rest.watch < 0) return;
  if (inotify_add_watch(rest.watch, file, IN_OPEN | IN_ATTRIB) < 0 || epoll_ctl(events, EPOLL_CTL_ADD, rest.watch, &event) < 0)
    close(rest.watch);
  else rest.untilMs = nowMs() + restMs;
}

static void endRest(void) {
  close(rest.watch);
  rest.untilMs = 0;
}

static void serve(struct plan *plan, const char *file, int listener) {
  enum { takenMax = 32 };
  struct epoll_event taken[takenMax];
  int criu = accept4(listener, NULL, NULL, SOCK_CLOEXEC), isComplete = 0;
  if (criu < 0) giveUp("accept");
  close(listener);
  struct epoll_event event = {.events = EPOLLIN};
  if (epoll_ctl(events, EPOLL_CTL_ADD, criu, &event) < 0) giveUp("epoll");
  for (;;) {
    int count = epoll_wait(events, taken, takenMax, isComplete ? restLeftMs() : -1);
    for (int i = 0; i < count; i++) {
      if (taken[i].data.ptr == &rest) endRest();
      else if (taken[i].data.ptr) takeMessages(plan, taken[i].data.ptr);
      else if (takeProcess(plan, criu)) isComplete = 1, close(criu), letEmptyGo(plan), beginRest(file);
    }
    if (!isComplete) continue;
    struct space *next = nextToBring(plan);
    if (!next) return;
    if (restLeftMs() == 0) bringNext(next);
  }
}

// ---- the two processes

// Kills all processes of the sandbox. Its group may be gone, and another of the same name there: `group` is the old
// one.
static void endSandbox(int group) {
  static char text[processesBytesMax];
  for (int look = 0; look < endingLooksMax; look++) {
    int fd = openat(group, "cgroup.procs", O_RDONLY | O_CLOEXEC); // reading this one again may show old content
    ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    if (length <= 0) return;
    text[length] = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
      if (atoi(line) > 1) kill(atoi(line), SIGKILL);
    nanosleep(&(struct timespec){.tv_nsec = pauseNs}, NULL);
  }
}

static void spareMe(void) {
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, "-1000", 5) < 0) errno = 0; // root of a host in a container may not
  if (fd >= 0) close(fd);
}

// Stops using the descriptors that it was started with. Its complaints go to a file, for the platform to find.
static void detach(const char *complaints) {
  int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  int file = open(complaints, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  for (int fd = 0; fd < 3; fd++) dup2(fd == 2 && file >= 0 ? file : nothing, fd);
  close(nothing), close(file);
  struct rlimit descriptors;
  // Each process that forks meanwhile brings a descriptor.
  if (getrlimit(RLIMIT_NOFILE, &descriptors) == 0) descriptors.rlim_cur = descriptors.rlim_max, setrlimit(RLIMIT_NOFILE, &descriptors);
}

static const struct image *imageOf(struct plan *plan, const char *name) {
  for (struct image *i = plan->images; i; i = i->next)
    if (!strcmp(i->name, name)) return i;
  struct image *image = calloc(1, sizeof *image);
  if (!image) giveUp("memory");
  snprintf(image->name, sizeof image->name, "%s", name);
  image->fd = openat(plan->directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  image->sums = sumsOf(plan->sums, name);
  if (image->fd < 0 || !image->sums) giveUp(name);
  image->next = plan->images, plan->images = image;
  return image;
}

// Lines of a plan: `group DIRECTORY` (the sandbox's processes), `snapshot PATH` (with checksums), `directory PATH` (of the
// images), for each process `process PID FILE`, then `area FROM TO` for what the kernel watches and `piece FROM TO OFFSET`
// for what comes later, and `now FILE FROM TO` for the pieces of images that are needed at once.
static void readPlan(const char *path, struct plan *plan, int (*now)(const struct image *, uint64_t from, uint64_t to)) {
  char line[lineBytesMax], text[64];
  FILE *file = fopen(path, "re");
  if (!file) giveUp(path);
  struct piece p;
  for (int pid; fgets(line, sizeof line, file);) {
    line[strcspn(line, "\n")] = 0;
    if (!strncmp(line, "group ", 6)) plan->group = open(line + 6, O_PATH | O_DIRECTORY | O_CLOEXEC);
    else if (!strncmp(line, "snapshot ", 9)) {
      int snapshot = open(line + 9, O_PATH | O_DIRECTORY | O_CLOEXEC);
      plan->sums = snapshot < 0 ? NULL : readSums(snapshot);
    } else if (!strncmp(line, "directory ", 10)) plan->directory = open(line + 10, O_PATH | O_DIRECTORY | O_CLOEXEC);
    else if (sscanf(line, "process %d %63s", &pid, text) == 2) {
      struct space *s = calloc(1, sizeof *s);
      if (!s) giveUp("memory");
      *s = (struct space){.pid = pid, .faults = -1, .image = imageOf(plan, text), .next = plan->spaces};
      plan->spaces = s;
    } else if (sscanf(line, "piece %lu %lu %lu", &p.from, &p.to, &p.offset) == 3 && plan->spaces) addPiece(&plan->spaces->missing, p);
    else if (sscanf(line, "area %lu %lu", &p.from, &p.to) == 2 && plan->spaces) addPiece(&plan->spaces->areas, (struct piece){p.from, p.to, 0});
    else if (sscanf(line, "now %63s %lu %lu", text, &p.from, &p.to) != 3) giveUp("the plan");
    else if (now && now(imageOf(plan, text), p.from, p.to) < 0) giveUp(text);
  }
  fclose(file);
  if (plan->group < 0 || plan->directory < 0) giveUp("the plan");
}

static int listenIn(int directory) {
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SOCKET_NAME};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || fchdir(directory) < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 2) < 0) giveUp(SOCKET_NAME);
  return fd;
}

// `file` is the plan. It is locked while one of the two processes lives, and removed when all memory is there or the
// sandbox has ended.
static _Noreturn void keep(const char *file, int ready) {
  struct plan plan = {.group = -1, .directory = -1};
  int lock = open(file, O_RDONLY | O_CLOEXEC);
  if (lock < 0 || flock(lock, LOCK_EX) < 0) giveUp(file);
  readPlan(file, &plan, NULL);
  int listener = listenIn(plan.directory);
  events = epoll_create1(EPOLL_CLOEXEC);
  spareMe();
  char complaints[lineBytesMax];
  snprintf(complaints, sizeof complaints, "%s.log", file);
  detach(complaints);
  pid_t pid = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
  if (pid < 0) giveUp("clone");
  if (pid == 0) {
    // A sandbox can make this process go through its lists again and again, and can make them long.
    struct rlimit processor = {processorS, processorS}, data = {dataBytesMax, dataBytesMax};
    if (setrlimit(RLIMIT_CPU, &processor) < 0 || setrlimit(RLIMIT_DATA, &data) < 0) giveUp("limits");
    alarm(deadlineS); // so that it ends even if no CRIU comes
    waitForCriu(listener, lock);
    serve(&plan, file, listener);
    _exit(0);
  }
  if (write(ready, "", 1) < 0) errno = 0;
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) endSandbox(plan.group);
  else unlink(complaints);
  unlink(file);
  _exit(0);
}

// ---- what the platform starts

// Starts the two processes, and answers when CRIU can connect. They go on without the platform.
int bringLater(const char *file) {
  int ready[2];
  char sign;
  ssize_t length;
  if (pipe2(ready, O_CLOEXEC) < 0) return complainOf("pipe");
  pid_t pid = fork();
  if (pid < 0) return complainOf("fork");
  if (pid == 0) {
    setsid();
    keep(file, ready[1]);
  }
  close(ready[1]);
  while ((length = read(ready[0], &sign, 1)) < 0 && errno == EINTR) {
  }
  return length == 1 ? 0 : 1; // it has printed why
}

static int readNow(const struct image *image, uint64_t from, uint64_t to) {
  for (; from < to; from++)
    if (readPiece(image->sums, image->fd, from, held.bytes) < 0) return -1;
  return 0;
}

// 0 if the memory that CRIU puts back at once is unchanged.
int verifyNow(const char *file) {
  static struct plan plan = {.group = -1, .directory = -1};
  readPlan(file, &plan, readNow);
  return 0;
}

// Waits until all memory has come: then `file` is gone. If it is not, the processes that bring the memory were killed.
int waitForLater(const char *file) {
  struct stat facts;
  int fd = open(file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? 0 : complainOf(file);
  while (flock(fd, LOCK_SH) < 0)
    if (errno != EINTR) return complainOf(file);
  if (fstat(fd, &facts) < 0) return complainOf(file);
  return facts.st_nlink == 0 ? 0 : (dprintf(2, "whoever was to bring it has ended\n"), 1);
}

// Ends the process that waits in `directory` for a CRIU, when none came or it has failed, and waits for its end.
int endLater(const char *file, const char *directory) {
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SOCKET_NAME};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  // Connects and says nothing. Nobody listens if CRIU has come: then its end has ended the other, too.
  if (fd >= 0 && chdir(directory) == 0 && connect(fd, (struct sockaddr *)&address, sizeof address) < 0) errno = 0;
  if (fd >= 0) close(fd);
  return waitForLater(file);
}
