// The node's native helper: work that needs raw system calls in a single-threaded process with a small heap.
//
// It lives in a mount namespace of its own: every layer and disk that it mounts disappears with it, however it ends.
// The platform speaks to it over one unix socket; when that closes, the helper ends.
//
// Request:  id NUL op NUL argument NUL ... NUL LF      (arguments hold neither NUL nor LF)
// Answer:   id TAB "ok" TAB result ... LF              or  id TAB "err" TAB errno TAB text LF
// Event:    "!" TAB "ready" TAB pid LF                 once: the process that shows the namespace to others
//           "!" TAB "exit" TAB tag LF                  a watched process ended
//           "!" TAB "closed" TAB tag LF                all have closed the output of a program of `start`, or more came
//
// Requests are carried out one after the other; only `spawn` and `start` answer later, so that programs run side by
// side. The arguments and answers of each operation are typed in src/node/native/operations.ts; a test keeps the two
// lists equal.
#define _GNU_SOURCE
#include "helper.h"
#include "groups.h"
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

enum {
  requestBytesMax = 1 << 16,
  childrenMax = 224, // the platform asks for no more, by the same number: src/node/native/program-places.ts
  watchesMax = 8192,
  outputBytesMax = 4096, // of a program's output, the helper keeps the last part
};

enum { tagBytes = 40 };

struct child {
  int isUsed;
  pid_t pid; // 0: it has ended, but others may still hold its output
  char id[24];
  char tag[tagBytes]; // of `start`; empty: nobody needs to know when its output is closed
  int output; // read end of stdout and stderr; -1 when closed
  int64_t deadlineMs;
  int length; // of text
  char text[outputBytesMax];
};

struct watch {
  int pidfd; // -1: free
  char tag[tagBytes];
};

// Ctrl-C in the platform's terminal and the end of its service reach the helper too; the platform decides when it ends.
static const int ignored[] = {SIGPIPE, SIGINT, SIGTERM, SIGHUP};

char scratchDirectory[256];
int olderKernel;
static int channel;
static struct child children[childrenMax];
static struct watch watches[watchesMax];
static int watchesUsed;

// Programs that run from sealed copies in memory, by the names that `spawn` is given.
static struct { char name[32]; int fd; } sealed[4];
static int sealedCount;

static int64_t nowMs(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static void sendAll(const char *data, size_t length) {
  while (length) {
    ssize_t n = write(channel, data, length);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) exit(0); // the platform is gone
    data += n, length -= n;
  }
}

__attribute__((format(printf, 1, 2))) static void sendLine(const char *format, ...) {
  char line[outputBytesMax + 1024];
  va_list list;
  va_start(list, format);
  int n = vsnprintf(line, sizeof line - 1, format, list);
  va_end(list);
  if (n > (int)sizeof line - 2) n = sizeof line - 2;
  for (int i = 0; i < n; i++)
    if (line[i] == '\n') line[i] = ' ';
  line[n++] = '\n';
  sendAll(line, n);
}

int fail(struct failure *failure, const char *what) {
  failure->error = errno;
  snprintf(failure->what, sizeof failure->what, "%s: %s", what, strerror(errno));
  return -1;
}

// ---- programs

static struct child *freeChild(void) {
  for (int i = 0; i < childrenMax; i++)
    if (!children[i].isUsed) return &children[i];
  return NULL;
}

// seal name path: from now on, `spawn name` runs a copy of the program that nothing can change. A container runtime
// must run from such a copy, so that no container can overwrite it. crun makes one at each start unless it finds that
// it already runs from one.
static int opSeal(struct request *r, struct failure *f) {
  if (sealedCount == sizeof sealed / sizeof *sealed) return errno = ENOSPC, fail(f, "too many sealed programs");
  int from = open(r->argument[1], O_RDONLY | O_CLOEXEC);
  if (from < 0) return fail(f, r->argument[1]);
  struct stat s;
  int fd = memfd_create(r->argument[0], MFD_CLOEXEC | MFD_ALLOW_SEALING), result = fd < 0 || fstat(from, &s) < 0 ? -1 : 0;
  for (off_t at = 0; result == 0 && at < s.st_size;)
    if (sendfile(fd, from, &at, s.st_size - at) <= 0) result = -1;
  if (result == 0) result = fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
  if (result < 0) fail(f, "sealed copy");
  close(from);
  if (result < 0) return close(fd), -1;
  snprintf(sealed[sealedCount].name, sizeof sealed->name, "%s", r->argument[0]);
  sealed[sealedCount++].fd = fd;
  return 0;
}

// Leading arguments of the form NAME=value go into the environment, as with env(1).
static void execute(char **argument) {
  for (char *equals; argument[1] && (equals = strchr(argument[0], '=')) && !memchr(argument[0], '/', equals - argument[0]); argument++) putenv(argument[0]);
  for (int i = 0; i < sealedCount; i++)
    if (!strcmp(sealed[i].name, argument[0])) fexecve(sealed[i].fd, argument, environ);
  execvp(argument[0], argument);
}

// `argument`: timeoutMs stdin groups [NAME=value...] program argument...
static int run(struct request *r, char **argument, const char *tag, struct failure *f) {
  struct child *c = freeChild();
  if (!c) return errno = EAGAIN, fail(f, "too many programs at once");
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) < 0) return fail(f, "pipe");
  if (pipe2(out, O_CLOEXEC) < 0) return close(in[0]), close(in[1]), fail(f, "pipe");
  struct groups groups;
  if (openGroups(&groups, argument[2]) < 0) return close(in[0]), close(in[1]), close(out[0]), close(out[1]), fail(f, "control groups");
  const char *input = argument[1];
  if (*input && (write(in[1], input, strlen(input)) < 0 || write(in[1], "\n", 1) < 0)) perror("stdin");
  close(in[1]);
  pid_t helper = getpid(), pid = forkInto(&groups);
  if (pid == 0) {
    setpgid(0, 0);
    // This also holds when the helper is killed: otherwise nobody would end a CRIU that waits for a process for ever.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != helper) _exit(127);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_DFL);
    dup2(in[0], 0), dup2(out[1], 1), dup2(out[1], 2);
    if (enterGroups(&groups) < 0) dprintf(2, "control groups: %s", strerror(errno)), _exit(127);
    execute(argument + 3);
    dprintf(2, "%s: %s", argument[3], strerror(errno));
    _exit(127);
  }
  int error = errno;
  close(in[0]), close(out[1]);
  if (pid < 0) return close(out[0]), errno = error, fail(f, "fork");
  fcntl(out[0], F_SETFL, O_NONBLOCK);
  c->isUsed = 1, c->pid = pid, c->output = out[0], c->length = 0, c->deadlineMs = nowMs() + atoll(argument[0]);
  snprintf(c->id, sizeof c->id, "%s", r->id);
  snprintf(c->tag, sizeof c->tag, "%s", tag);
  return 1; // answered by reapChildren
}

// spawn timeoutMs stdin groups [NAME=value...] program argument...: runs a program in the helper's mount namespace, in
// control groups (their directories, separated by spaces). Answers its wait status and the end of what it printed. The
// program's descendants may outlive it.
static int opSpawn(struct request *r, struct failure *f) { return run(r, r->argument, "", f); }

// start tag timeoutMs stdin groups [NAME=value...] program argument...: like `spawn`, and reports once when the
// program's descendants have closed its output as well.
static int opStart(struct request *r, struct failure *f) { return run(r, r->argument + 1, r->argument[0], f); }

// The program has ended, and nobody holds its output.
static void forget(struct child *c) {
  c->isUsed = 0;
  if (*c->tag) sendLine("!\tclosed\t%s", c->tag);
}

// Reads what the program has printed so far, keeping the last part. Its descendants may hold the pipe open for ever.
static void drain(struct child *c) {
  char part[outputBytesMax];
  ssize_t n = 0;
  while (c->output >= 0 && (n = read(c->output, part, sizeof part)) > 0) {
    int over = c->length + n > outputBytesMax ? c->length + n - outputBytesMax : 0;
    memmove(c->text, c->text + over, c->length - over);
    c->length -= over;
    memcpy(c->text + c->length, part, n);
    c->length += n;
  }
  if (c->output >= 0 && n == 0) close(c->output), c->output = -1;
}

// A program that has ended may leave descendants that are a sandbox's: it reads their output only once, however much
// comes.
static void takeOutput(struct child *c) {
  char part[outputBytesMax];
  if (c->pid) return drain(c);
  if (read(c->output, part, sizeof part) < 0 && (errno == EAGAIN || errno == EINTR)) return;
  close(c->output), c->output = -1;
  forget(c);
}

static void reapChildren(void) {
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    for (int i = 0; i < childrenMax; i++) {
      struct child *c = &children[i];
      if (c->pid != pid) continue;
      drain(c);
      if (c->output >= 0 && !*c->tag) close(c->output), c->output = -1;
      sendLine("%s\tok\t%d\t%.*s", c->id, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), c->length, c->text);
      c->pid = 0;
      if (c->output < 0) forget(c);
    }
  }
}

static int killOverdue(void) {
  int64_t now = nowMs(), next = -1;
  for (int i = 0; i < childrenMax; i++) {
    if (!children[i].pid) continue;
    if (children[i].deadlineMs <= now) kill(-children[i].pid, SIGKILL);
    int64_t left = children[i].deadlineMs > now ? children[i].deadlineMs - now : 100;
    if (next < 0 || left < next) next = left;
  }
  return next > 60000 ? 60000 : (int)next;
}

// ---- processes of sandboxes

// watch tag pid: reports once when the process ends. The init of a PID namespace ends after all other processes in it.
static int opWatch(struct request *r, struct failure *f) {
  int fd = syscall(SYS_pidfd_open, (pid_t)atoi(r->argument[1]), 0);
  if (fd < 0) return fail(f, "pidfd_open");
  int i = 0;
  while (i < watchesUsed && watches[i].pidfd >= 0) i++;
  if (i == watchesMax) return close(fd), errno = EAGAIN, fail(f, "too many watched processes");
  if (i == watchesUsed) watchesUsed++;
  watches[i].pidfd = fd;
  snprintf(watches[i].tag, sizeof watches[i].tag, "%s", r->argument[0]);
  return 0;
}

// kill tag: sends SIGKILL to a watched process. Its end is reported like any other.
static int opKill(struct request *r, struct failure *f) {
  for (int i = 0; i < watchesUsed; i++)
    if (watches[i].pidfd >= 0 && !strcmp(watches[i].tag, r->argument[0])) {
      if (syscall(SYS_pidfd_send_signal, watches[i].pidfd, SIGKILL, NULL, 0) < 0 && errno != ESRCH) return fail(f, "kill");
      return 0;
    }
  return errno = ESRCH, fail(f, "no such watched process");
}

// ---- the loop

static const struct {
  const char *name;
  int argumentsMin;
  int (*run)(struct request *, struct failure *);
} operations[] = {
    {"spawn", 4, opSpawn}, {"start", 5, opStart}, {"watch", 2, opWatch},       {"kill", 1, opKill},
    {"disk-create", 2, opDiskCreate}, {"disk-mount", 2, opDiskMount}, {"disk-used", 1, opDiskUsed}, {"layer-mount", 3, opLayerMount},
    {"show", 2, opShow},           {"unmount", 1, opUnmount},     {"adopt-root", 5, opAdoptRoot}, {"bind", 4, opBind}, {"size-shared-memory", 2, opSizeSharedMemory},
    {"link-up", 8, opLinkUp},      {"link-down", 1, opLinkDown}, {"view", 3, opView}, {"seal", 2, opSeal},
    {"name-host", 2, opNameHost}, {"overlay-mount", 5, opOverlayMount}, {"mapped-mount", 3, opMappedMount}, {"restrict", 1, opRestrict}, {"access-up", 7, opAccessUp},
};

static void carryOut(char *line, size_t length) {
  struct request r = {0};
  struct failure f = {0};
  char *field[requestPartsMax + 1];
  const char *name = parseRequest(line, length, field, &r);
  if (!name) return sendLine("%s\terr\t%d\tmalformed request", line, errno);
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
    if (strcmp(operations[i].name, name)) continue;
    if (r.arguments < operations[i].argumentsMin) return sendLine("%s\terr\t%d\t%s: too few arguments", r.id, EINVAL, name);
    int answer = operations[i].run(&r, &f);
    if (answer == 0) sendLine("%s\tok\t%s", r.id, r.result);
    else if (answer < 0) sendLine("%s\terr\t%d\t%s: %s", r.id, f.error, name, f.what);
    return;
  }
  sendLine("%s\terr\t%d\tunknown operation %s", r.id, ENOSYS, name);
}

static void readRequests(void) {
  static char buffer[requestBytesMax];
  static size_t used;
  ssize_t n = read(channel, buffer + used, sizeof buffer - used);
  if (n < 0 && errno == EINTR) return;
  if (n <= 0) exit(0);
  used = takeLines(buffer, used + n, carryOut);
  if (used == sizeof buffer) exit(2); // longer than any request that the platform makes
}

static void reportExits(const struct pollfd *watched, int watching) {
  reapChildren(); // a process is reaped before its end is reported
  for (int i = 0; i < watching; i++) {
    if (watches[i].pidfd < 0 || !watched[i].revents) continue;
    close(watches[i].pidfd);
    watches[i].pidfd = -1;
    sendLine("!\texit\t%s", watches[i].tag);
  }
  while (watchesUsed && watches[watchesUsed - 1].pidfd < 0) watchesUsed--;
}

// crun refuses hosts where cgroup2 is mounted beside v1 controllers. In this namespace alone, the cgroup2 mount is
// covered by an empty tmpfs, into which crun may create the directories that it expects.
static void hideUnifiedCgroup(void) {
  if (access("/sys/fs/cgroup/memory/tasks", F_OK) < 0 || access("/sys/fs/cgroup/unified/cgroup.procs", F_OK) < 0) return;
  if (mount("none", "/sys/fs/cgroup/unified", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4m") < 0) perror("tmpfs over cgroup2");
}

static int connectTo(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ? fd : -1;
}

// A process that stays in the namespace: others reach its mounts through /proc/PID/root. The helper's own can't serve
// for that: while the helper is inside a sandbox, it shows the sandbox's root.
static pid_t startAnchor(void) {
  pid_t parent = getpid(), pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  close(channel);
  while (getppid() == parent) pause();
  _exit(0);
}

int main(int count, char **arguments) {
  int status = snapshotProgram(count, arguments);
  if (status >= 0) return status;
  olderKernel = count == 3 && !strcmp(arguments[2], "--older-kernel");
  if ((count != 2 && !olderKernel) || !strchr(arguments[1], '/')) return dprintf(2, "usage: helper SOCKET [--older-kernel]\n"), 2;
  snprintf(scratchDirectory, sizeof scratchDirectory, "%.*s/scratch", (int)(strrchr(arguments[1], '/') - arguments[1]), arguments[1]);
  channel = connectTo(arguments[1]);
  if (channel < 0) return perror(arguments[1]), 1;
  // Programs started here end with the platform. Sandboxes do not: they were handed to their own init.
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0) return perror("mount namespace"), 1;
  // A file system of its own, in this namespace alone: however the helper ends, nothing of it is left.
  if ((mkdir(scratchDirectory, 0700) < 0 && errno != EEXIST) || mount("none", scratchDirectory, "tmpfs", 0, "size=64k") < 0) return perror(scratchDirectory), 1;
  hideUnifiedCgroup();
  pid_t anchor = startAnchor();
  if (anchor < 0) return perror("fork"), 1;
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  sigprocmask(SIG_BLOCK, &mask, NULL);
  int signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
  sendLine("!\tready\t%d", anchor);
  static struct pollfd polled[2 + childrenMax + watchesMax];
  for (;;) {
    polled[0] = (struct pollfd){.fd = channel, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = signals, .events = POLLIN};
    for (int i = 0; i < childrenMax; i++) polled[2 + i] = (struct pollfd){.fd = children[i].isUsed ? children[i].output : -1, .events = POLLIN};
    struct pollfd *watched = polled + 2 + childrenMax;
    int watching = watchesUsed;
    for (int i = 0; i < watching; i++) watched[i] = (struct pollfd){.fd = watches[i].pidfd, .events = POLLIN};
    if (poll(polled, 2 + childrenMax + watching, killOverdue()) < 0 && errno != EINTR) return perror("poll"), 1;
    for (int i = 0; i < childrenMax; i++)
      if (polled[2 + i].revents) takeOutput(&children[i]);
    if (polled[1].revents) {
      struct signalfd_siginfo info;
      while (read(signals, &info, sizeof info) > 0) {
      }
      reapChildren();
    }
    reportExits(watched, watching);
    if (polled[0].revents) readRequests();
  }
}
