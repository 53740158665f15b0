// Process 1 of a sandbox, and small programs that do for the agent what Bun can't.
//
//   init [serve] [--port N] [-- agent [argument…]]   process 1: starts the agent, keeps it running, reaps orphans
//   init [serve] --relay ADDRESS PORT OWN [--port N]   the same, and leads connections in (relay.c)
//   init [serve] --named-later …                      the same, and gives the sandbox its host name (naming.c)
//   init pump                                         copies fd 3 (inotify) to stdout until either end closes
//   init remove DIRECTORY                             removes a directory with all that is in it
//
// It is static and reads nothing of the root file system: it must work in a root that holds nothing else.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "remove-tree.h"
#include "spawner.h"

int serveRelay(const char *address, int port, const char *own); // relay.c

// ---- A memfd that init and the agent share, at this fd in the agent. src/agent/durable/layout.ts has the same
// numbers.
enum {
  stateFd = 3,
  tokenOffset = 0,      // the control token and a newline
  tokenBytesMax = 256,
  exitsOffset = 4096,   // uint32 count of all orphans that ever ended, then a ring of their ends
  exitsMax = 500,
  stateBytes = 64 << 20, // sparse: only what is written takes memory
};
struct orphanEnd { uint32_t pid; int32_t status; };
struct orphanEnds { _Atomic uint32_t count; struct orphanEnd ring[exitsMax]; };

enum {
  defaultPort = 49983,
  restartPauseMsMax = 1000,  // between two starts of an agent that ends at once
  steadyMs = 10000,          // an agent that ran this long is started again without a pause
  hourMs = 3600 * 1000,
  politeMs = 5000,           // between SIGTERM and SIGKILL at the end of the sandbox
  foreignGroup = 65534,      // any but root's
};

void say(const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length > (int)sizeof text - 1) length = sizeof text - 1;
  if (write(2, text, length) < 0) return;
}

static int64_t nowMs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static void allSignalsDefault(void) {
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

static void writeFile(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  if (write(fd, text, strlen(text)) < 0) errno = 0;
  close(fd);
}

// ---- pump: the agent's event loop can wait for a pipe, but not for inotify.
static int pump(void) {
  static char buffer[64 << 10] __attribute__((aligned(8)));
  for (;;) {
    struct pollfd ends[2] = { { .fd = 3, .events = POLLIN }, { .fd = 1, .events = 0 } };
    if (poll(ends, 2, -1) < 0 && errno != EINTR) return 1;
    if (ends[1].revents & (POLLERR | POLLHUP)) return 0;
    if (!(ends[0].revents & POLLIN)) continue;
    ssize_t size = read(3, buffer, sizeof buffer);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (size <= 0) return 1;
    for (ssize_t done = 0; done < size;) {
      ssize_t written = write(1, buffer + done, size - done);
      if (written < 0 && errno != EINTR) return 0;
      if (written > 0) done += written;
    }
  }
}

// ---- Process 1.

struct serving {
  pid_t agent;
  pid_t relay; // 0: there is none
  char **relayArguments; // address, port, own address; NULL: none is wanted
  char **agentArguments;
  struct orphanEnds *ends;
  struct channel channel; // with this agent
  int sign; // whoever started the sandbox sees this close: the agent closes it once it serves; -1: closed
  int64_t startedMs;
  int64_t restartAtMs; // 0: the agent runs
  int pauseMs;
};

// The token comes by a pipe: arguments and environment can be read by every process of the sandbox.
static size_t readToken(char *token) {
  size_t length = 0;
  while (length < tokenBytesMax - 1) {
    ssize_t size = read(0, token + length, tokenBytesMax - 1 - length);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    length += size;
    if (memchr(token, '\n', length)) break;
  }
  char *end = memchr(token, '\n', length);
  if (end) length = end - token;
  return length;
}

static struct orphanEnds *createState(const char *token, size_t length) {
  int fd = syscall(SYS_memfd_create, "state", 0);
  if (fd < 0 || ftruncate(fd, stateBytes)) return NULL;
  if (pwrite(fd, token, length, tokenOffset) != (ssize_t)length || pwrite(fd, "\n", 1, tokenOffset + length) != 1) return NULL;
  if (fd != stateFd) {
    if (dup2(fd, stateFd) < 0) return NULL;
    close(fd);
  }
  void *ends = mmap(NULL, sizeof(struct orphanEnds), PROT_READ | PROT_WRITE, MAP_SHARED, stateFd, exitsOffset);
  return ends == MAP_FAILED ? NULL : ends;
}

// Holds the port while no agent does: a process of another user can't take it, as only the same user may share it.
static void holdPort(int port) {
  if (port == 0) return;
  int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int yes = 1, no = 0;
  struct sockaddr_in6 any6 = { .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_ANY_INIT };
  if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes) && !setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) &&
      !bind(fd, (struct sockaddr *)&any6, sizeof any6)) return;
  if (fd >= 0) close(fd);
  fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in any4 = { .sin_family = AF_INET, .sin_port = htons(port) };
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes) || bind(fd, (struct sockaddr *)&any4, sizeof any4))
    say("init: cannot hold port %d: %s\n", port, strerror(errno));
}

// A descriptor may already have the number that another is to get.
static void giveDescriptors(const int ends[2], int sign) {
  int requests = fcntl(ends[0], F_DUPFD, agentSignFd + 1), replies = fcntl(ends[1], F_DUPFD, agentSignFd + 1);
  dup2(sign < 0 ? STDIN_FILENO : sign, agentSignFd);
  if (sign == agentSignFd) fcntl(sign, F_SETFD, 0);
  dup2(requests, agentRequestsFd);
  dup2(replies, agentRepliesFd);
  syscall(SYS_close_range, agentSignFd + 1, ~0U, 0);
}

static void closeSign(struct serving *serving) {
  if (serving->sign >= 0) close(serving->sign);
  serving->sign = -1;
}

static void startAgent(struct serving *serving) {
  serving->startedMs = nowMs();
  serving->restartAtMs = 0;
  int ends[2];
  if (openChannel(&serving->channel, ends)) ends[0] = ends[1] = -1;
  pid_t pid = ends[0] < 0 ? -1 : fork();
  if (pid == 0) {
    allSignalsDefault();
    giveUpNaming();
    setsid();
    giveDescriptors(ends, serving->sign);
    // A program whose effective group is not its real one is not dumpable from its first instruction on (execve(2),
    // prctl(2)): no other process of the sandbox, not even root's, reads the tokens while it starts. The agent takes
    // its group back by itself.
    if (setresgid(-1, foreignGroup, -1)) errno = 0;
    // JavaScriptCore sizes its heap by the memory that it believes to have: the host's, not the sandbox's. In its
    // small mode an idle agent keeps 0.8 MiB less, and a busy one takes a tenth more processor time. Functions that
    // run a few hundred times at most are not worth compiling: most agents never run one more often, and compiling
    // would cost a start 1.5 ms and 0.4 MiB. Bun's timer would collect garbage every second while nothing happens:
    // half a core with hundreds of idle sandboxes (src/agent/collect-garbage.ts). The agent needs memory that its
    // start has freed again in the next milliseconds: giving it back after 2 s instead of 0.1, and preparing no blocks
    // of the heap in a thread, saves a quarter of the processor time, and 0.6 MiB.
    char *environment[] = { "BUN_JSC_forceRAMSize=134217728", "BUN_JSC_thresholdForJITAfterWarmUp=4000",
                            "BUN_JSC_thresholdForJITSoon=2000", "BUN_JSC_useWarmUpMarkedBlocks=0", "BUN_GC_TIMER_DISABLE=1",
                            "MIMALLOC_PURGE_DELAY=2000", "MIMALLOC_PURGE_HOLES_MIN_INTERVAL=2000", "HOME=/", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", NULL };
    execve(serving->agentArguments[0], serving->agentArguments, environment);
    say("init: cannot start %s: %s\n", serving->agentArguments[0], strerror(errno));
    _exit(127);
  }
  int error = errno;
  for (int i = 0; i < 2; i++) if (ends[i] >= 0) close(ends[i]);
  if (pid < 0) {
    closeChannel(&serving->channel);
    say("init: cannot start the agent: %s\n", strerror(error));
    serving->restartAtMs = nowMs() + restartPauseMsMax;
    return;
  }
  serving->agent = pid;
  closeSign(serving);
}

// The relay holds nothing that must last: when it ends, it is started again.
static void startRelay(struct serving *serving) {
  if (!serving->relayArguments || (serving->relay = fork()) != 0) return;
  allSignalsDefault();
  giveUpNaming();
  signal(SIGPIPE, SIG_IGN);
  setsid();
  close(stateFd);
  closeSign(serving);
  closeChannel(&serving->channel);
  prctl(PR_SET_NAME, "relay");
  _exit(serveRelay(serving->relayArguments[0], atoi(serving->relayArguments[1]), serving->relayArguments[2]));
}

// A steady agent is started again at once; one that keeps ending is started ever more slowly, up to once a second.
static void agentEnded(struct serving *serving, int status) {
  say("init: the agent ended (%s %d), starting it again\n", WIFSIGNALED(status) ? "signal" : "status", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  serving->agent = 0;
  closeChannel(&serving->channel);
  if (nowMs() - serving->startedMs >= steadyMs) serving->pauseMs = 0;
  serving->restartAtMs = nowMs() + serving->pauseMs;
  serving->pauseMs = serving->pauseMs ? serving->pauseMs * 2 : 20;
  if (serving->pauseMs > restartPauseMsMax) serving->pauseMs = restartPauseMsMax;
}

static void lookAtAgent(struct serving *serving) {
  int status;
  if (serving->agent == 0 || waitpid(serving->agent, &status, WNOHANG | WUNTRACED) <= 0) return;
  // A stopped agent would silently stop every client of the sandbox.
  if (WIFSTOPPED(status)) kill(serving->agent, SIGCONT);
  else agentEnded(serving, status);
}

// While there is no room to report the next end to the agent, processes that ended stay zombies.
static void reap(struct serving *serving) {
  int status;
  pid_t pid;
  lookAtAgent(serving);
  while (!mustWait(&serving->channel) && (pid = waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid == serving->agent) {
      agentEnded(serving, status);
    } else if (pid == serving->relay) {
      startRelay(serving);
    } else {
      uint32_t count = atomic_load(&serving->ends->count);
      serving->ends->ring[count % exitsMax] = (struct orphanEnd){ pid, status };
      atomic_store(&serving->ends->count, count + 1);
      reportEnd(&serving->channel, pid, status);
    }
  }
}

// The polite end: asks every process to end, then kills the rest. Ends init, and with process 1 the sandbox.
static _Noreturn void endSandbox(struct serving *serving, int isProcessOne) {
  if (!isProcessOne) {
    if (serving->agent) kill(serving->agent, SIGTERM);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) {}
    _exit(0);
  }
  kill(-1, SIGTERM);
  int64_t deadline = nowMs() + politeMs;
  for (;;) {
    while (waitpid(-1, NULL, WNOHANG) > 0) {}
    if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD) _exit(0);
    if (nowMs() >= deadline) _exit(0);
    struct timespec pause = { 0, 20 * 1000000 };
    nanosleep(&pause, NULL);
  }
}

// The output that the runtime gave to process 1 is a pipe that nobody reads any more, and a way out of the sandbox.
// Only the first agent has it, until it serves; up to then nothing of the sandbox's owner runs. Answers its
// descriptor; -1: none.
static int closeOutside(int isProcessOne) {
  syscall(SYS_close_range, 3, ~0U, 0);
  int sign = isProcessOne ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, agentSignFd) : -1;
  int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < (isProcessOne ? 3 : 1); fd++) {
    if (null >= 0) dup2(null, fd);
    else close(fd);
  }
  if (null >= 3) close(null);
  return sign;
}

// CRIU lets processes make system calls of its own: it sets their registers, and a breakpoint behind the call. If CRIU
// is killed before it has restored the registers, the process stays in front of that breakpoint, which no tracer
// handles any more; process 1 would end there, and with it the whole sandbox. All that process 1 has to know is in
// memory, not in registers: it goes on with its loop.
static sigjmp_buf loop;

static void toLoop(int number, siginfo_t *info, void *context) {
  (void)number, (void)context;
  if (info->si_code > 0) siglongjmp(loop, 1); // the kernel's; a SIGTRAP that a process sent is no breakpoint
}

static void surviveBreakpoints(void) {
  struct sigaction action = { .sa_sigaction = toLoop, .sa_flags = SA_SIGINFO };
  sigemptyset(&action.sa_mask);
  sigaction(SIGTRAP, &action, NULL);
}

static void takeSignals(struct serving *serving, int signals, int isProcessOne) {
  struct signalfd_siginfo taken;
  while (read(signals, &taken, sizeof taken) == sizeof taken) {
    if (taken.ssi_signo == SIGTERM || taken.ssi_signo == SIGINT || taken.ssi_signo == SIGPWR) endSandbox(serving, isProcessOne);
  }
  reap(serving);
}

// Waits for a signal, a request or room for an answer, and does what there is to do.
static void waitAndServe(struct serving *serving, int signals, int timeoutMs, int isProcessOne) {
  struct channel *channel = &serving->channel;
  int isFull = mustWait(channel);
  struct pollfd ends[3] = { { .fd = signals, .events = POLLIN }, { .fd = isFull ? -1 : channel->requests, .events = POLLIN },
                            { .fd = isFull ? channel->replies : -1, .events = POLLOUT } };
  if (poll(ends, 3, timeoutMs) < 0) return;
  if (ends[2].revents) {
    sendWaiting(channel);
    reap(serving);
  }
  if (ends[1].revents && !receiveRequests(channel)) closeChannel(channel);
  if (ends[0].revents) takeSignals(serving, signals, isProcessOne);
}

static int serve(int port, int isNamedLater, char **relayArguments, char **agentArguments) {
  static char token[tokenBytesMax];
  static struct serving serving;
  serving = (struct serving){ .agentArguments = agentArguments, .relayArguments = relayArguments };
  size_t length = readToken(token);
  if (length == 0) { say("init: no control token on stdin\n"); return 1; }
  int isProcessOne = getpid() == 1;
  if (isNamedLater && isProcessOne) allowNaming();
  serving.sign = closeOutside(isProcessOne);
  serving.ends = createState(token, length);
  if (!serving.ends) { say("init: no memory for the state: %s\n", strerror(errno)); return 1; }
  explicit_bzero(token, sizeof token);
  // The token is in this process's memory and behind one of its descriptors.
  prctl(PR_SET_DUMPABLE, 0);
  if (chdir("/")) return 1;
  umask(022);
  // Programs would inherit signals that are ignored.
  allSignalsDefault();
  if (!isProcessOne) prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Only a privileged parent can have lowered the score; this asks for the lowest that is allowed.
  writeFile("/proc/self/oom_score_adj", "-1000");
  holdPort(port);

  static sigset_t waited;
  sigemptyset(&waited);
  for (int number = 1; number < NSIG; number++)
    if (number != SIGSEGV && number != SIGBUS && number != SIGILL && number != SIGFPE && number != SIGABRT && number != SIGTRAP) sigaddset(&waited, number);
  sigprocmask(SIG_SETMASK, &waited, NULL);
  int signals = signalfd(-1, &waited, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) { say("init: no signalfd: %s\n", strerror(errno)); return 1; }
  serving.channel = (struct channel){ -1, -1 };
  startAgent(&serving);
  startRelay(&serving);
  // The lost registers may have held a SIGCHLD that was already taken.
  if (sigsetjmp(loop, 1)) finishStart(&serving.channel), reap(&serving);
  surviveBreakpoints();
  for (;;) {
    int64_t left = serving.restartAtMs ? serving.restartAtMs - nowMs() : hourMs;
    if (left <= 0) { startAgent(&serving); continue; }
    waitAndServe(&serving, signals, left, isProcessOne);
  }
}

int main(int count, char **argv) {
  if (count > 1 && !strcmp(argv[1], "pump")) return pump();
  if (count > 2 && !strcmp(argv[1], "remove")) return removeTree(AT_FDCWD, argv[2]);
  int at = count > 1 && !strcmp(argv[1], "serve") ? 2 : 1;
  int port = defaultPort;
  char **relayArguments = NULL;
  int isNamedLater = at < count && !strcmp(argv[at], "--named-later");
  at += isNamedLater;
  if (at + 3 < count && !strcmp(argv[at], "--relay")) { relayArguments = argv + at + 1; at += 4; }
  if (at + 1 < count && !strcmp(argv[at], "--port")) { port = atoi(argv[at + 1]); at += 2; }
  static char portText[16];
  snprintf(portText, sizeof portText, "%d", port);
  static char *ours[] = { "/.agent/agent", "--port", portText, NULL };
  if (at < count && !strcmp(argv[at], "--") && at + 1 < count) return serve(port, isNamedLater, relayArguments, argv + at + 1);
  return serve(port, isNamedLater, relayArguments, ours);
}
