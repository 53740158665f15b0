// Data of clients and services through the relay: it comes out as it went in, in order, whatever the pieces.
#include "fuzz.h"

// Nothing is connected: no service listens.
static int noSocket(int domain, int type, int protocol) { return errno = domain && type && !protocol ? ECONNREFUSED : EINVAL, -1; }

#define socket noSocket
#include "../../../native/relay.c"

enum { carriedMax = 4096 };

struct way {
  int from, to; // the outer ends
  size_t sent, received;
  uint8_t bytes[carriedMax];
};

static void sendSome(struct way *way, const uint8_t *data, size_t size) {
  if (way->from < 0 || size > sizeof way->bytes - way->sent) return;
  ssize_t n = send(way->from, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n > 0) memcpy(way->bytes + way->sent, data, n), way->sent += n;
}

static void receiveSome(struct way *way) {
  uint8_t part[carriedMax];
  for (ssize_t n; way->to >= 0 && (n = recv(way->to, part, sizeof part, MSG_DONTWAIT)) > 0; way->received += n) must(way->received + n <= way->sent && !memcmp(part, way->bytes + way->received, n));
}

static void ends(int *inner, int *outer) {
  int pair[2];
  must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
  *inner = pair[0], *outer = pair[1];
}

// A client asks for a port, octet by octet or at once; nothing listens there.
static void askFor(const uint8_t *data, size_t size) {
  struct pair *p = &pairs[0];
  int client, answered = -1;
  *p = (struct pair){.state = asking, .service = -1};
  ends(&p->client, &client);
  for (size_t i = 0; i < size && p->state == asking; i++) must(write(client, data + i, 1) == 1), ask(p);
  if (size == 0) close(client), client = -1, ask(p);
  uint8_t byte;
  if (client >= 0 && recv(client, &byte, 1, MSG_DONTWAIT) == 1) answered = byte;
  must(size >= 2 ? answered == 1 && p->state == unused : answered == -1);
  if (p->state != unused) closePair(p, 0);
  if (client >= 0) close(client);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct way in, out;
  askFor(data, size < 3 ? size : 3);
  struct pair *p = &pairs[1];
  *p = (struct pair){.state = relaying};
  int client, service;
  ends(&p->client, &client), ends(&p->service, &service);
  p->in.data = malloc(bufferBytes), p->out.data = malloc(bufferBytes);
  in = (struct way){.from = client, .to = service}, out = (struct way){.from = service, .to = client};
  for (size_t at = 0; at + 1 < size && p->state == relaying; at += 2) {
    size_t count = data[at + 1] < size - at ? data[at + 1] : size - at;
    if (data[at] & 1) sendSome(&in, data + at, count);
    if (data[at] & 2) sendSome(&out, data + at, count);
    if (data[at] == 0xfc) shutdown(client, SHUT_WR), in.from = -1;
    if (data[at] == 0xfd) shutdown(service, SHUT_WR), out.from = -1;
    relay(p, data[at] & 4 ? 0 : POLLIN, data[at] & 8 ? 0 : POLLIN);
    receiveSome(&in), receiveSome(&out);
  }
  for (int round = 0; round < 4 && p->state == relaying; round++) relay(p, POLLIN, POLLIN), receiveSome(&in), receiveSome(&out);
  // Nothing is lost if both ends were there until the end.
  if (p->state == relaying) must(in.received == in.sent && out.received == out.sent), closePair(p, 0);
  close(client), close(service);
  return 0;
}
