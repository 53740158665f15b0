// What an agent may send to process 1: every whole start and question is answered once, in order, and nothing else
// happens.
#include "fuzz.h"
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static int noSignal(pid_t pid, int number) { return pid && number ? 0 : -1; }

#define kill noSignal
#include "../../../native/spawner.c"
#undef kill

void say(const char *format, ...) { (void)format; }
// The host's own name must not change.
void nameSandbox(const char *name, size_t length) { must(length < requestBytesMax && (length == 0 || name)); }
void giveUpNaming(void) {}

// Everything that a start would use is read.
pid_t startProgram(const struct program *program) {
  size_t length = strlen(program->cwd);
  for (char **text = program->argv; *text; text++) length += strlen(*text);
  for (char **text = program->environment; *text; text++) length += strlen(*text);
  for (size_t i = 0; i < program->groupCount; i++) length += program->groups[i] & 1;
  must(program->argv[0] && program->fdCount >= 1 && program->fdCount <= programFdsMax);
  return 1 + length % (pidsMax - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct channel channel;
  int agent[2], answers = 0;
  must(openChannel(&channel, agent) == 0);
  for (int open = 1; open && size > 1; ) {
    // The first byte says how long a piece is, and with how many descriptors it comes.
    size_t piece = 1 + (data[0] >> 2), fds = data[0] & 3;
    data++, size--;
    if (piece > size) piece = size;
    union { struct cmsghdr head; char bytes[CMSG_SPACE(sizeof(int) * 3)]; } control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int) * fds), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
    memcpy(CMSG_DATA(&control.head), (int[]){ agent[1], agent[1], agent[1] }, sizeof(int) * fds);
    struct iovec from = { (void *)data, piece };
    struct msghdr message = { .msg_iov = &from, .msg_iovlen = 1, .msg_control = fds ? &control : NULL, .msg_controllen = fds ? CMSG_SPACE(sizeof(int) * fds) : 0 };
    must(sendmsg(agent[0], &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)piece);
    data += piece, size -= piece;
    open = receiveRequests(&channel);
    must(received <= sizeof buffer && receivedFdCount <= programFdsMax);
    struct reply reply;
    fcntl(agent[1], F_SETFL, O_NONBLOCK);
    while (read(agent[1], &reply, sizeof reply) == sizeof reply) answers++, must(reply.kind == replyStarted || reply.kind == replyFailed || reply.kind == replyRuns);
  }
  must(answers <= 4096);
  closeChannel(&channel);
  closeFds();
  close(agent[0]), close(agent[1]);
  return 0;
}
