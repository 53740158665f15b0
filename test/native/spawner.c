// Starts programs over a channel as the agent does, in one process. Prints the number of checks.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../native/spawner.h"

void say(const char *format, ...) {
  va_list list;
  va_start(list, format);
  vdprintf(2, format, list);
  va_end(list);
}

static char name[65];

void nameSandbox(const char *given, size_t length) { memcpy(name, given, length < 64 ? length : 64); }
void giveUpNaming(void) {}

struct reply { uint32_t kind, about; int32_t value; };
enum { started = 1, failed = 2, ended = 3, runs = 4, headWords = 8 };

static struct channel channel;
static int agent[2], looked;
static char request[4 << 20];

static void expect(int condition, const char *what) {
  looked++;
  if (!condition) dprintf(2, "not so: %s (%s)\n", what, strerror(errno)), exit(1);
}

// `texts` ends with an empty one; the directory comes first.
static size_t describe(uint32_t id, uint32_t uid, uint32_t arguments, const char *const *texts) {
  uint32_t groups[] = { uid, 27 }, head[headWords] = { 0, 1, id, 0, uid, uid, 2, arguments };
  size_t at = sizeof head + sizeof groups;
  for (; **texts; texts++) at += sprintf(request + at, "%s", *texts) + 1;
  head[0] = at;
  memcpy(request, head, sizeof head);
  memcpy(request + sizeof head, groups, sizeof groups);
  return at;
}

static void sendWith(const char *bytes, size_t size, const int *fds, int count) {
  union { struct cmsghdr head; char bytes[CMSG_SPACE(sizeof(int) * 3)]; } control = { 0 };
  struct iovec from = { (void *)bytes, size };
  struct msghdr message = { .msg_iov = &from, .msg_iovlen = 1 };
  if (count > 0) {
    message.msg_control = &control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
    *CMSG_FIRSTHDR(&message) = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int) * count), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), fds, sizeof(int) * count);
  }
  expect(sendmsg(agent[0], &message, 0) == (ssize_t)size, "the request is sent");
}

static struct reply nextReply(void) {
  struct reply reply = { 0 };
  struct pollfd end = { .fd = agent[1], .events = POLLIN };
  expect(poll(&end, 1, 10000) == 1 && read(agent[1], &reply, sizeof reply) == sizeof reply, "there is an answer");
  return reply;
}

static int endOf(pid_t pid) {
  int status;
  expect(waitpid(pid, &status, 0) == pid, "the program is a child");
  reportEnd(&channel, pid, status);
  struct reply reply = nextReply();
  expect(reply.kind == ended && reply.about == (uint32_t)pid && reply.value == status, "its end is told");
  return status;
}

// Answers the exit status; `output` gets what the program wrote to both outputs.
static int run(uint32_t uid, uint32_t arguments, const char *const *texts, char *output, size_t piece) {
  static uint32_t id;
  int pipes[2];
  size_t size = describe(++id, uid, arguments, texts);
  expect(pipe(pipes) == 0, "there is a pipe");
  for (size_t at = 0; at < size; at += piece) {
    sendWith(request + at, size - at < piece ? size - at : piece, (int[]){ pipes[1], pipes[1] }, at == 0 ? 2 : 0);
    expect(receiveRequests(&channel), "the channel is open");
  }
  close(pipes[1]);
  struct reply reply = nextReply();
  expect(reply.kind == started && reply.about == id && reply.value > 0, "the program has started");
  size_t length = 0;
  for (ssize_t n; (n = read(pipes[0], output + length, 4095 - length)) > 0; length += n) {}
  output[length] = 0;
  close(pipes[0]);
  return endOf(reply.value);
}

static void startsPrograms(void) {
  char output[4096];
  for (size_t piece = 1; piece < 100; piece += 7) {
    int status = run(65534, 3, (const char *const[]){ "/tmp", "sh", "-c", "echo $A; pwd; id -u; id -G; exit 7", "A=b c", "PATH=/usr/bin:/bin", "" }, output, piece);
    expect(WEXITSTATUS(status) == 7 && !strcmp(output, "b c\n/tmp\n65534\n65534 27\n"), "it has user, groups, directory and environment");
  }
  expect(WEXITSTATUS(run(0, 1, (const char *const[]){ "/", "no-such-program", "PATH=/bin", "" }, output, 4096)) == 127 && strstr(output, "not found"), "one that is not there");
  expect(WEXITSTATUS(run(0, 1, (const char *const[]){ "/no/where", "true", "" }, output, 4096)) == 126 && strstr(output, "cannot enter"), "a directory that is not there");
  expect(WEXITSTATUS(run(0, 1, (const char *const[]){ "/", getenv("SCRIPT"), "" }, output, 4096)) == 0 && !strcmp(output, "from a script\n"), "a script without an interpreter");
}

static void takesTheName(void) {
  const uint32_t head[headWords] = { sizeof head + 7, 4 };
  memcpy(request, head, sizeof head);
  memcpy(request + sizeof head, "sandbox", 7);
  sendWith(request, sizeof head + 7, NULL, 0);
  expect(receiveRequests(&channel) && !strcmp(name, "sandbox"), "the name has come");
}

// More than fits in a socket, arriving in pieces.
static void takesLongRequests(void) {
  static char longText[128 << 10];
  const char *texts[14] = { "/", "sh", "-c", "echo ${#1} ${#9}", "sh" };
  memset(longText, 'x', 120 << 10);
  for (int i = 5; i < 13; i++) texts[i] = longText;
  texts[13] = "";
  char output[4096];
  expect(WEXITSTATUS(run(0, 12, texts, output, 60 << 10)) == 0 && !strcmp(output, "122880 0\n"), "long arguments arrive");
}

static void signalsItsOwnAlone(void) {
  size_t size = describe(1000, 0, 2, (const char *const[]){ "/", "sleep", "100", "PATH=/usr/bin:/bin", "" });
  sendWith(request, size, (int[]){ 1, 2 }, 2);
  expect(receiveRequests(&channel), "the channel is open");
  pid_t pid = nextReply().value, other = fork();
  if (other == 0) pause(), _exit(0);
  sendWith((const char *)(uint32_t[]){ 32, 2, other, SIGKILL, 0, 0, 0, 0 }, 32, NULL, 0);
  sendWith((const char *)(uint32_t[]){ 32, 2, pid, SIGKILL, 0, 0, 0, 0 }, 32, NULL, 0);
  expect(receiveRequests(&channel), "the channel is open");
  expect(WTERMSIG(endOf(pid)) == SIGKILL, "a program that was started gets its signal");
  expect(waitpid(other, NULL, WNOHANG) == 0 && kill(other, SIGKILL) == 0 && waitpid(other, NULL, 0) == other, "another process gets none");
}

static int isRunning(pid_t pid) {
  sendWith((const char *)(uint32_t[]){ 32, 3, pid, 0, 0, 0, 0, 0 }, 32, NULL, 0);
  expect(receiveRequests(&channel), "the channel is open");
  struct reply reply = nextReply();
  expect(reply.kind == runs && reply.about == (uint32_t)pid, "it is told whether a program runs");
  return reply.value;
}

// Another agent asks, and hears of the end.
static void tellsWhatRuns(void) {
  size_t size = describe(1500, 0, 2, (const char *const[]){ "/", "sleep", "100", "PATH=/usr/bin:/bin", "" });
  sendWith(request, size, (int[]){ 1, 2 }, 2);
  expect(receiveRequests(&channel), "the channel is open");
  pid_t pid = nextReply().value;
  closeChannel(&channel);
  close(agent[0]), close(agent[1]);
  expect(openChannel(&channel, agent) == 0, "there is another channel");
  expect(isRunning(pid) == 1 && isRunning(getpid()) == 0, "what was started runs, and others were not started");
  expect(kill(pid, SIGKILL) == 0 && WTERMSIG(endOf(pid)) == SIGKILL && isRunning(pid) == 0, "it has ended");
}

static sigjmp_buf away;
static void goAway(int number) { siglongjmp(away, number); }

// The registers are lost where the answer is written: the start is finished, not repeated.
static void finishesAStart(void) {
  int broken[2], replies = channel.replies;
  expect(pipe(broken) == 0 && close(broken[0]) == 0, "there is a pipe that nobody reads");
  signal(SIGPIPE, goAway);
  size_t size = describe(1700, 0, 2, (const char *const[]){ "/", "sleep", "100", "PATH=/usr/bin:/bin", "" });
  sendWith(request, size, (int[]){ 1, 2 }, 2);
  channel.replies = broken[1];
  if (!sigsetjmp(away, 1)) expect(!receiveRequests(&channel), "the registers are lost");
  channel.replies = replies;
  close(broken[1]);
  finishStart(&channel);
  sendWaiting(&channel);
  struct reply reply = nextReply();
  expect(reply.kind == started && reply.about == 1700 && reply.value > 0, "the program has started");
  expect(isRunning(reply.value) == 1, "the next answer is about the next request");
  expect(kill(reply.value, SIGKILL) == 0 && WTERMSIG(endOf(reply.value)) == SIGKILL, "it has ended");
  expect(waitpid(-1, NULL, WNOHANG) < 0, "there is no other program");
}

// What the child does before it becomes the program: here it may meet a breakpoint.
static int meetsBreakpoint;
mode_t umask(mode_t mask) {
  if (meetsBreakpoint) raise(SIGTRAP);
  return syscall(SYS_umask, mask);
}

static void goOn(int number) { (void)number, _exit(3); }

// Process 1 continues after a breakpoint, and its copy must not do so beside it.
static void endsAtABreakpoint(void) {
  signal(SIGTRAP, goOn);
  size_t size = describe(1800, 0, 1, (const char *const[]){ "/", "true", "PATH=/usr/bin:/bin", "" });
  sendWith(request, size, (int[]){ 1, 2 }, 2);
  meetsBreakpoint = 1;
  expect(receiveRequests(&channel), "the channel is open");
  meetsBreakpoint = 0;
  int status = endOf(nextReply().value);
  expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP, "what was to be a program ends there");
}

static void refusesNonsense(void) {
  size_t size = describe(2000, 0, 9, (const char *const[]){ "/", "true", "" });
  sendWith(request, size, (int[]){ 1, 2 }, 2);
  expect(receiveRequests(&channel), "the channel is open");
  struct reply reply = nextReply();
  expect(reply.kind == failed && reply.about == 2000 && reply.value == EINVAL, "more arguments than texts");
  size = describe(2001, 0, 1, (const char *const[]){ "/", "true", "" });
  sendWith(request, size, NULL, 0);
  expect(receiveRequests(&channel), "the channel is open");
  reply = nextReply();
  expect(reply.kind == failed && reply.about == 2001 && reply.value == EBADF, "no descriptors");
  sendWith((const char *)(uint32_t[headWords]){ 3, 1 }, 32, NULL, 0);
  expect(!receiveRequests(&channel), "a length that can't be ends the channel");
}

int main(void) {
  expect(openChannel(&channel, agent) == 0, "there is a channel");
  startsPrograms();
  takesTheName();
  takesLongRequests();
  signalsItsOwnAlone();
  tellsWhatRuns();
  finishesAStart();
  endsAtABreakpoint();
  refusesNonsense();
  closeChannel(&channel);
  printf("%d\n", looked);
  return 0;
}
