// init relay ADDRESS PORT: connections from outside to services that listen on the sandbox's loopback only.
//
// If the sandbox's network stack is not the kernel's, nobody outside can make a socket in it. So a client connects to
// ADDRESS:PORT, writes the number of the port that it wants (2 bytes, the high one first), reads one byte (0:
// connected, 1: nothing listens there), and then speaks with the service.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
  pairsMax = 512,        // connections at a time; others wait to be accepted
  bufferBytes = 64 << 10 // of each direction
};

// One direction: bytes read of `from` that are not yet written to the other end.
struct direction {
  char *data;
  size_t start, length;
  int ended; // `from` sends nothing more
  int told;  // the other end was told so
};

struct pair {
  enum { unused, asking, connecting, relaying } state;
  int client, service;
  int attempt; // the target that is being tried
  uint16_t port;
  unsigned char asked[2];
  int askedBytes;
  struct direction in, out; // client to service, service to client
};

static struct pair pairs[pairsMax];
static in_addr_t ownAddress;

static void closePair(struct pair *p, int reset) {
  struct linger abort = {.l_onoff = 1};
  for (int *fd = (int[]){p->client, p->service, -2}; *fd != -2; fd++) {
    if (*fd < 0) continue;
    if (reset) setsockopt(*fd, SOL_SOCKET, SO_LINGER, &abort, sizeof abort);
    close(*fd);
  }
  free(p->in.data), free(p->out.data);
  *p = (struct pair){.client = -1, .service = -1};
}

// Begins a connection to the next target: the loopback by either family, then the sandbox's own address.
static int connectNext(struct pair *p) {
  for (; p->attempt < 3; p->attempt++) {
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(p->port), .sin_addr.s_addr = p->attempt ? ownAddress : htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(p->port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int isV6 = p->attempt == 1;
    p->service = socket(isV6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (p->service < 0) continue;
    int result = isV6 ? connect(p->service, (struct sockaddr *)&v6, sizeof v6) : connect(p->service, (struct sockaddr *)&v4, sizeof v4);
    if (result == 0 || errno == EINPROGRESS) return p->attempt++, p->state = connecting, 1;
    close(p->service), p->service = -1;
  }
  return 0;
}

static void answer(struct pair *p, unsigned char byte) {
  if (write(p->client, &byte, 1) != 1 || byte) return closePair(p, 0);
  p->state = relaying;
}

static void connected(struct pair *p) {
  int error = 0, yes = 1;
  socklen_t size = sizeof error;
  getsockopt(p->service, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error) {
    close(p->service), p->service = -1;
    if (!connectNext(p)) answer(p, 1);
    return;
  }
  setsockopt(p->service, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  p->in.data = malloc(bufferBytes), p->out.data = malloc(bufferBytes);
  if (!p->in.data || !p->out.data) return closePair(p, 1);
  answer(p, 0);
}

static void ask(struct pair *p) {
  ssize_t n = read(p->client, p->asked + p->askedBytes, 2 - p->askedBytes);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return closePair(p, 0);
  if ((p->askedBytes += n) < 2) return;
  p->port = p->asked[0] << 8 | p->asked[1];
  if (!connectNext(p)) answer(p, 1);
}

// Answers -1 if an end was reset.
static int readInto(struct direction *d, int from) {
  if (d->length) return 0;
  ssize_t n = read(from, d->data, bufferBytes);
  if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
  d->start = 0, d->length = n, d->ended = n == 0;
  return 0;
}

static int writeOut(struct direction *d, int to) {
  while (d->length) {
    ssize_t n = send(to, d->data + d->start, d->length, MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
    d->start += n, d->length -= n;
  }
  if (d->ended && !d->told) shutdown(to, SHUT_WR), d->told = 1;
  return 0;
}

static void relay(struct pair *p, short client, short service) {
  if (client & (POLLIN | POLLHUP | POLLERR) && !p->in.ended && readInto(&p->in, p->client) < 0) return closePair(p, 1);
  if (service & (POLLIN | POLLHUP | POLLERR) && !p->out.ended && readInto(&p->out, p->service) < 0) return closePair(p, 1);
  if (writeOut(&p->in, p->service) < 0 || writeOut(&p->out, p->client) < 0) return closePair(p, 1);
  // The other end is gone: nobody will read what this one still sends.
  if ((p->in.ended && service & POLLERR) || (p->out.ended && client & POLLERR)) return closePair(p, 1);
  if (p->in.told && p->out.told) closePair(p, 0);
}

static short eventsOf(const struct direction *read, const struct direction *written) {
  return (read->ended || read->length ? 0 : POLLIN) | (written->length ? POLLOUT : 0);
}

static void acceptOne(int listener) {
  int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), yes = 1;
  if (fd < 0) return;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  for (struct pair *p = pairs; p < pairs + pairsMax; p++) {
    if (p->state != unused) continue;
    *p = (struct pair){.state = asking, .client = fd, .service = -1};
    return;
  }
  close(fd);
}

static int listenAt(const char *address, int port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = inet_addr(address)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  return fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, pairsMax) == 0 ? fd : -1;
}

// Serves until it is killed. `own` is the sandbox's address on the way out.
int serveRelay(const char *address, int port, const char *own) {
  int listener = listenAt(address, port);
  if (listener < 0) return 1;
  ownAddress = inet_addr(own);
  for (struct pair *p = pairs; p < pairs + pairsMax; p++) p->client = p->service = -1;
  static struct pollfd polled[1 + 2 * pairsMax];
  for (;;) {
    int used = 0;
    for (int i = 0; i < pairsMax; i++) {
      struct pair *p = &pairs[i];
      struct pollfd *ends = polled + 1 + 2 * i;
      ends[0] = ends[1] = (struct pollfd){.fd = -1};
      if (p->state == unused) continue;
      used++;
      if (p->state == asking) ends[0] = (struct pollfd){.fd = p->client, .events = POLLIN};
      if (p->state == connecting) ends[1] = (struct pollfd){.fd = p->service, .events = POLLOUT};
      if (p->state != relaying) continue;
      short client = eventsOf(&p->in, &p->out), service = eventsOf(&p->out, &p->in);
      // Ends of which no event is wanted are left out: they would report their hang-up over and over.
      if (client) ends[0] = (struct pollfd){.fd = p->client, .events = client};
      if (service) ends[1] = (struct pollfd){.fd = p->service, .events = service};
    }
    polled[0] = (struct pollfd){.fd = used < pairsMax ? listener : -1, .events = POLLIN};
    if (poll(polled, 1 + 2 * pairsMax, -1) < 0) continue;
    for (int i = 0; i < pairsMax; i++) {
      struct pair *p = &pairs[i];
      short client = polled[1 + 2 * i].revents, service = polled[2 + 2 * i].revents;
      if (!client && !service) continue;
      if (p->state == asking) ask(p);
      else if (p->state == connecting) connected(p);
      else if (p->state == relaying) relay(p, client, service);
    }
    if (polled[0].revents) acceptOne(listener);
  }
}
