// The channel by which the agent has process 1 start and signal programs. They are children of process 1, so a start
// copies no large process, a program outlives the agent, and no signal hits another program that got the number of one
// that ended.
//
// Requests come over a stream socket, answers and ends go over a pipe, in records that are written whole or not at all.
// src/agent/process/spawner.ts is the other side.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "spawner.h"

enum {
  requestBytesMax = 8 << 20, // head and all texts
  stringsMax = 1 << 18,      // arguments and variables; the kernel takes fewer (execve(2))
  groupsMax = 65536,
  pidsMax = 1 << 22,         // PID_MAX_LIMIT
  pageBytes = 4096,
  keptBytes = 64 << 10,      // of the buffer, once a request that needed more is done
};

enum { requestStart = 1, requestSignal = 2, requestLook = 3, requestName = 4 /* the sandbox's host name behind the head */ };

struct requestHead {
  uint32_t bytes; // all of the request, this head included
  uint32_t kind;
  uint32_t id;    // of requestSignal and requestLook: the PID
  uint32_t flags; // of requestSignal: the number of the signal; the rest is unused
  uint32_t uid;
  uint32_t gid;
  uint32_t groups;    // behind the head, 32 bits each
  uint32_t arguments; // number of arguments; behind the groups: directory, arguments, variables, each with a NUL
};

enum { replyStarted = 1 /* id, PID */, replyFailed = 2 /* id, errno */, replyEnded = 3 /* PID, wait status */, replyRuns = 4 /* PID, 0 or 1 */ };

struct reply { uint32_t kind, about; int32_t value; };

// None of this may be lost with the registers, and an agent that is started again gets it fresh (openChannel).
static uint8_t buffer[requestBytesMax] __attribute__((aligned(pageBytes)));
static size_t received;
static int receivedFds[programFdsMax];
static int receivedFdCount;
static struct reply waiting; // kind 0: none
static uint32_t underWay;    // the start under way, whose request is still in the buffer, 0: none; agents count from 1
static pid_t underWayPid;    // its program, 0: there is none yet
static char *strings[stringsMax + 2] __attribute__((aligned(pageBytes)));
static uint8_t started[pidsMax / 8]; // programs that run; a page takes memory only once it is written

// What is written before this call is in memory before what is written after it, should the registers be lost in
// between.
static void inOrder(void) { atomic_signal_fence(memory_order_seq_cst); }

static void closeFds(void) {
  while (receivedFdCount > 0) close(receivedFds[--receivedFdCount]);
}

int openChannel(struct channel *channel, int agentEnds[2]) {
  int sockets[2], pipes[2];
  *channel = (struct channel){ -1, -1 };
  received = underWay = underWayPid = 0;
  waiting.kind = 0;
  closeFds();
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets)) return -1;
  if (pipe2(pipes, O_CLOEXEC)) { close(sockets[0]); close(sockets[1]); return -1; }
  if (fcntl(sockets[0], F_SETFL, O_NONBLOCK) || fcntl(pipes[1], F_SETFL, O_NONBLOCK)) errno = 0;
  *channel = (struct channel){ sockets[0], pipes[1] };
  agentEnds[0] = sockets[1];
  agentEnds[1] = pipes[0];
  return 0;
}

void closeChannel(struct channel *channel) {
  if (channel->requests >= 0) close(channel->requests);
  if (channel->replies >= 0) close(channel->replies);
  *channel = (struct channel){ -1, -1 };
  waiting.kind = 0;
}

int mustWait(const struct channel *channel) {
  return channel->replies >= 0 && waiting.kind != 0;
}

void sendWaiting(struct channel *channel) {
  if (waiting.kind == 0) return;
  ssize_t size = channel->replies < 0 ? 0 : write(channel->replies, &waiting, sizeof waiting);
  // An agent that is gone needs no answer; one that does not read gets its answer later.
  if (size >= 0 || (errno != EAGAIN && errno != EINTR)) waiting.kind = 0;
}

static void answer(struct channel *channel, uint32_t kind, uint32_t about, int32_t value) {
  waiting.about = about;
  waiting.value = value;
  inOrder();
  waiting.kind = kind;
  sendWaiting(channel);
}

static void forget(pid_t pid) { started[pid / 8] &= ~(1 << pid % 8); }
static int isStarted(uint32_t pid) { return pid > 0 && pid < pidsMax && (started[pid / 8] & 1 << pid % 8); }

void reportEnd(struct channel *channel, pid_t pid, int status) {
  if (!isStarted(pid)) return;
  forget(pid);
  if (channel->replies >= 0) answer(channel, replyEnded, pid, status);
}

void finishStart(struct channel *channel) {
  if (underWay == 0) return;
  uint32_t id = underWay;
  pid_t pid = underWayPid;
  closeFds();
  // A start comes with descriptors, and a read takes in nothing behind them.
  received = 0;
  inOrder();
  underWay = underWayPid = 0;
  // This start may have been answered already: the agent ignores a second answer.
  if (channel->replies >= 0 && waiting.kind == 0) answer(channel, pid > 0 ? replyStarted : replyFailed, id, pid > 0 ? pid : EINTR);
}

// Finds the texts behind the groups. Answers how many there are; -1 if the last has no end or there are too many.
static int readStrings(const uint8_t *bytes, size_t length, char **into) {
  int count = 0;
  while (length > 0) {
    const uint8_t *end = memchr(bytes, 0, length);
    if (!end || count == stringsMax) return -1;
    into[count++] = (char *)bytes;
    length -= end + 1 - bytes;
    bytes = end + 1;
  }
  return count;
}

// Reads a complete start. Answers 0, or an errno.
static int readStart(const struct requestHead *head, struct program *program) {
  size_t groupBytes = head->groups <= groupsMax ? head->groups * sizeof(gid_t) : SIZE_MAX, texts = head->bytes - sizeof *head;
  if (groupBytes > texts) return EINVAL;
  const uint8_t *groups = (const uint8_t *)(head + 1);
  // The directory and the arguments stand before the variables; a NULL must come between them.
  char **all = strings + 1;
  int count = readStrings(groups + groupBytes, texts - groupBytes, all);
  if (count < 0) return E2BIG;
  if (head->arguments < 1 || head->arguments > (uint32_t)count - 1 || count == 0) return EINVAL;
  int needed = head->flags & programTerminal ? 1 : 2;
  if (receivedFdCount < needed) return EBADF;
  memmove(strings, all, (head->arguments + 1) * sizeof *strings);
  strings[head->arguments + 1] = NULL;
  strings[count + 1] = NULL;
  *program = (struct program){ .uid = head->uid, .gid = head->gid, .flags = head->flags, .groupCount = head->groups, .groups = (const gid_t *)groups,
    .cwd = strings[0], .argv = strings + 1, .environment = strings + head->arguments + 2, .fdCount = receivedFdCount };
  memcpy(program->fds, receivedFds, sizeof program->fds);
  return 0;
}

static void start(struct channel *channel, const struct requestHead *head) {
  struct program program;
  // A sandbox that has no name by now gets none.
  giveUpNaming();
  underWayPid = 0;
  inOrder();
  underWay = head->id;
  inOrder();
  int error = readStart(head, &program);
  pid_t pid = error ? -1 : startProgram(&program);
  if (pid < 0 && !error) error = errno;
  if (pid >= pidsMax) error = EOVERFLOW;
  if (!error) started[pid / 8] |= 1 << pid % 8, underWayPid = pid;
  inOrder();
  closeFds();
  answer(channel, error ? replyFailed : replyStarted, head->id, error ? error : pid);
}

// Handles the request at the start of the buffer. Answers its length, 0 if more must come, -1 for nonsense.
static ssize_t handle(struct channel *channel) {
  const struct requestHead *head = (const struct requestHead *)buffer;
  if (received < sizeof *head) return 0;
  if (head->bytes < sizeof *head || head->bytes > requestBytesMax) return -1;
  if (received < head->bytes) return 0;
  if (head->kind == requestStart) start(channel, head);
  // A program that has ended stays a child until it is reaped: until then no other process gets its number.
  else if (head->kind == requestSignal && isStarted(head->id)) kill(head->id, head->flags);
  else if (head->kind == requestName) nameSandbox((const char *)(head + 1), head->bytes - sizeof *head);
  // The end of a program that runs is reported later, even if another agent has asked for its start.
  else if (head->kind == requestLook) answer(channel, replyRuns, head->id, isStarted(head->id));
  return head->bytes;
}

// The descriptors of a request come with its first byte, and the kernel joins nothing to bytes that carry descriptors.
// It must not join any to the rest of a request whose own descriptors are here, so this reads no more than that rest.
static ssize_t receive(int socket) {
  union { struct cmsghdr head; char bytes[CMSG_SPACE(sizeof(int) * programFdsMax)]; } control;
  const struct requestHead *head = (const struct requestHead *)buffer;
  struct iovec into = { buffer + received, (received < sizeof *head ? sizeof buffer : head->bytes) - received };
  struct msghdr message = { .msg_iov = &into, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
  ssize_t size = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size <= 0) return size;
  for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    closeFds();
    receivedFdCount = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(receivedFds, CMSG_DATA(part), receivedFdCount * sizeof(int));
  }
  return size;
}

// Gives back the memory that a long request took.
static void shrink(void) {
  madvise(buffer + keptBytes, sizeof buffer - keptBytes, MADV_DONTNEED);
  madvise(strings, sizeof strings & ~(size_t)(pageBytes - 1), MADV_DONTNEED);
}

int receiveRequests(struct channel *channel) {
  while (!mustWait(channel)) {
    ssize_t done = handle(channel);
    if (done < 0) return 0;
    if (done > 0) {
      received -= done;
      memmove(buffer, buffer + done, received);
      inOrder();
      underWay = underWayPid = 0;
      if (done > keptBytes && received == 0) shrink();
      continue;
    }
    ssize_t size = receive(channel->requests);
    if (size == 0) return 0;
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    received += size;
  }
  return 1;
}
