// A sandbox's network link: a veth pair, addresses, neighbours and routes, by rtnetlink.
#define _GNU_SOURCE
#include "helper.h"
#include "netlink.h"
#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>

// Several netlink requests that are sent together; each is acknowledged.
struct batch {
  char data[4096];
  int length;
  int messages;
  struct nlmsghdr *last;
};

// A batch has a fixed form: what does not fit is a mistake of ours.
static void assertRoom(const struct batch *b, size_t size) {
  if (b->length + NLMSG_ALIGN(size) > sizeof b->data) abort();
}

static void *begin(struct batch *b, int type, int flags, const void *body, size_t size) {
  assertRoom(b, NLMSG_SPACE(size));
  struct nlmsghdr *h = b->last = (void *)(b->data + b->length);
  *h = (struct nlmsghdr){.nlmsg_len = NLMSG_LENGTH(size), .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags};
  memcpy(NLMSG_DATA(h), body, size);
  b->messages++;
  b->length += NLMSG_ALIGN(h->nlmsg_len);
  return h;
}

static struct rtattr *put(struct batch *b, int type, const void *data, size_t size) {
  assertRoom(b, RTA_SPACE(size));
  struct rtattr *a = (void *)((char *)b->last + NLMSG_ALIGN(b->last->nlmsg_len));
  a->rta_type = type, a->rta_len = RTA_LENGTH(size);
  if (size) memcpy(RTA_DATA(a), data, size);
  b->last->nlmsg_len = NLMSG_ALIGN(b->last->nlmsg_len) + RTA_ALIGN(a->rta_len);
  b->length = (char *)b->last - b->data + NLMSG_ALIGN(b->last->nlmsg_len);
  return a;
}

static void closeNest(struct batch *b, struct rtattr *nest) {
  nest->rta_len = (char *)b->last + b->last->nlmsg_len - (char *)nest;
}

// The kernel's highest error number (include/linux/err.h).
enum { errnoMax = 4095 };

// Reads until that many requests were acknowledged. Answers the first error that the kernel reports.
static int readAcknowledgements(int fd, int left) {
  while (left > 0) {
    char answer[8192] __attribute__((aligned(NLMSG_ALIGNTO)));
    ssize_t n = recv(fd, answer, sizeof answer, 0);
    if (n <= 0) return n < 0 ? errno : EPIPE;
    for (struct nlmsghdr *h = (void *)answer; isWholeMessage(h, n); h = NLMSG_NEXT(h, n)) {
      if (h->nlmsg_type != NLMSG_ERROR || h->nlmsg_len < NLMSG_LENGTH(sizeof(struct nlmsgerr))) continue;
      left--;
      int code = ((struct nlmsgerr *)NLMSG_DATA(h))->error;
      if (code) return code < 0 && code >= -errnoMax ? -code : EPROTO;
    }
  }
  return 0;
}

// Sends the batch in the current network namespace. Fails with the first error that the kernel reports.
static int submit(struct batch *b) {
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return -1;
  int error = send(fd, b->data, b->length, 0) < 0 ? errno : readAcknowledgements(fd, b->messages);
  close(fd);
  errno = error;
  return error ? -1 : 0;
}

static void addUp(struct batch *b, int index, unsigned flags) {
  begin(b, RTM_NEWLINK, 0, &(struct ifinfomsg){.ifi_index = index, .ifi_flags = IFF_UP | flags, .ifi_change = IFF_UP | flags}, sizeof(struct ifinfomsg));
}

// Packets that come in by the link are passed on, whatever the host does for other interfaces.
static void addForwarding(struct batch *b, int index) {
  const uint32_t on = 1;
  begin(b, RTM_NEWLINK, 0, &(struct ifinfomsg){.ifi_index = index}, sizeof(struct ifinfomsg));
  struct rtattr *families = put(b, IFLA_AF_SPEC, NULL, 0), *inet = put(b, AF_INET, NULL, 0), *settings = put(b, IFLA_INET_CONF, NULL, 0);
  put(b, IPV4_DEVCONF_FORWARDING, &on, 4);
  closeNest(b, settings), closeNest(b, inet), closeNest(b, families);
}

// Fixed neighbours on both ends, which are IFF_NOARP: none is asked for, and the host neither answers questions for its
// addresses nor believes anybody who says where one is. Before the neighbours: a change of the flag forgets them.
static void addNeighbour(struct batch *b, int index, in_addr_t address, const uint8_t *mac) {
  struct ndmsg n = {.ndm_family = AF_INET, .ndm_ifindex = index, .ndm_state = NUD_PERMANENT};
  begin(b, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, &n, sizeof n);
  put(b, NDA_DST, &address, 4), put(b, NDA_LLADDR, mac, 6);
}

static void addRoute(struct batch *b, int index, const in_addr_t *destination, in_addr_t gateway) {
  struct rtmsg m = {.rtm_family = AF_INET, .rtm_dst_len = destination ? 32 : 0, .rtm_table = RT_TABLE_MAIN, .rtm_protocol = RTPROT_STATIC,
                    .rtm_scope = RT_SCOPE_UNIVERSE, .rtm_type = RTN_UNICAST, .rtm_flags = RTNH_F_ONLINK};
  begin(b, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &m, sizeof m);
  if (destination) put(b, RTA_DST, destination, 4);
  put(b, RTA_GATEWAY, &gateway, 4), put(b, RTA_OIF, &index, 4);
}

static void disableIpv6(const char *name) {
  char path[96];
  snprintf(path, sizeof path, "/proc/sys/net/ipv6/conf/%s/disable_ipv6", name);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return; // no IPv6 in this kernel
  if (write(fd, "1", 1) < 0) perror(path);
  close(fd);
}

static int makePair(const char *name, const uint8_t *outerMac, const char *innerName, const uint8_t *innerMac, int netns, uint32_t mtu) {
  struct batch b = {0};
  begin(&b, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &(struct ifinfomsg){0}, sizeof(struct ifinfomsg));
  put(&b, IFLA_IFNAME, name, strlen(name) + 1), put(&b, IFLA_ADDRESS, outerMac, 6), put(&b, IFLA_MTU, &mtu, 4);
  struct rtattr *info = put(&b, IFLA_LINKINFO, NULL, 0);
  put(&b, IFLA_INFO_KIND, "veth", 5);
  struct rtattr *data = put(&b, IFLA_INFO_DATA, NULL, 0);
  struct rtattr *peer = put(&b, VETH_INFO_PEER, &(struct ifinfomsg){0}, sizeof(struct ifinfomsg));
  put(&b, IFLA_IFNAME, innerName, strlen(innerName) + 1), put(&b, IFLA_ADDRESS, innerMac, 6), put(&b, IFLA_MTU, &mtu, 4), put(&b, IFLA_NET_NS_FD, &netns, 4);
  closeNest(&b, peer), closeNest(&b, data), closeNest(&b, info);
  return submit(&b);
}

static int configureOuter(const char *name, in_addr_t slot, in_addr_t inner, const uint8_t *innerMac) {
  int index = if_nametoindex(name);
  disableIpv6(name);
  struct batch b = {0};
  addUp(&b, index, IFF_NOARP), addForwarding(&b, index), addNeighbour(&b, index, inner, innerMac), addRoute(&b, index, &slot, inner);
  return submit(&b);
}

static int configureInner(in_addr_t inner, in_addr_t gateway, const uint8_t *outerMac) {
  int index = if_nametoindex("eth0"), loopback = if_nametoindex("lo");
  disableIpv6("eth0");
  struct batch b = {0};
  addUp(&b, loopback, 0);
  struct ifaddrmsg a = {.ifa_family = AF_INET, .ifa_prefixlen = 30, .ifa_index = index};
  begin(&b, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, &a, sizeof a);
  put(&b, IFA_LOCAL, &inner, 4), put(&b, IFA_ADDRESS, &inner, 4);
  addUp(&b, index, IFF_NOARP), addNeighbour(&b, index, gateway, outerMac), addRoute(&b, index, NULL, gateway);
  return submit(&b);
}

// link-up pid name slotAddress innerAddress gateway outerMac innerMac mtu: connects a sandbox with the host.
// Inside, every sandbox has the same address; outside, `slotAddress` stands for it.
int opLinkUp(struct request *r, struct failure *f) {
  char path[64], *name = r->argument[1];
  uint8_t outerMac[6], innerMac[6];
  in_addr_t slot = inet_addr(r->argument[2]), inner = inet_addr(r->argument[3]), gateway = inet_addr(r->argument[4]);
  if (parseMac(r->argument[5], outerMac) < 0 || parseMac(r->argument[6], innerMac) < 0) return fail(f, "link-layer address");
  snprintf(path, sizeof path, "/proc/%s/ns/net", r->argument[0]);
  int netns = open(path, O_RDONLY | O_CLOEXEC), own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), result = -1;
  if (netns < 0 || own < 0) fail(f, "network namespace");
  else if (makePair(name, outerMac, "eth0", innerMac, netns, atoi(r->argument[7])) < 0) fail(f, "veth");
  else if (configureOuter(name, slot, inner, innerMac) < 0) fail(f, "outer end");
  else if (setns(netns, CLONE_NEWNET) < 0) fail(f, "setns");
  else {
    result = configureInner(inner, gateway, outerMac) < 0 ? fail(f, "inner end") : 0;
    if (setns(own, CLONE_NEWNET) < 0) exit(3);
  }
  if (netns >= 0) close(netns);
  if (own >= 0) close(own);
  return result;
}

// One end of a pair, in the current namespace: up, with a fixed neighbour.
static int configureEnd(const char *name, in_addr_t own, in_addr_t other, const uint8_t *otherMac) {
  int index = if_nametoindex(name);
  disableIpv6(name);
  struct batch b = {0};
  struct ifaddrmsg a = {.ifa_family = AF_INET, .ifa_prefixlen = 30, .ifa_index = index};
  begin(&b, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, &a, sizeof a);
  put(&b, IFA_LOCAL, &own, 4), put(&b, IFA_ADDRESS, &own, 4);
  addUp(&b, index, IFF_NOARP), addNeighbour(&b, index, other, otherMac);
  return submit(&b);
}

// access-up outerPid innerPid outerAddress innerAddress outerMac innerMac mtu: a pair between two processes' networks
// that leads nowhere else: the way to a sandbox whose network stack is not the kernel's.
int opAccessUp(struct request *r, struct failure *f) {
  char path[64];
  uint8_t outerMac[6], innerMac[6];
  in_addr_t outer = inet_addr(r->argument[2]), inner = inet_addr(r->argument[3]);
  if (parseMac(r->argument[4], outerMac) < 0 || parseMac(r->argument[5], innerMac) < 0) return fail(f, "link-layer address");
  snprintf(path, sizeof path, "/proc/%s/ns/net", r->argument[0]);
  int outside = open(path, O_RDONLY | O_CLOEXEC);
  snprintf(path, sizeof path, "/proc/%s/ns/net", r->argument[1]);
  int inside = open(path, O_RDONLY | O_CLOEXEC), own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), result = -1;
  if (outside < 0 || inside < 0 || own < 0 || setns(outside, CLONE_NEWNET) < 0) fail(f, "network namespace");
  else {
    if (makePair("access", outerMac, "access", innerMac, inside, atoi(r->argument[6])) < 0) fail(f, "veth");
    else if (configureEnd("access", outer, inner, innerMac) < 0) fail(f, "outer end");
    else if (setns(inside, CLONE_NEWNET) < 0) fail(f, "setns");
    else result = configureEnd("access", inner, outer, outerMac) < 0 ? fail(f, "inner end") : 0;
    if (setns(own, CLONE_NEWNET) < 0) exit(3);
  }
  if (outside >= 0) close(outside);
  if (inside >= 0) close(inside);
  if (own >= 0) close(own);
  return result;
}

// link-down name: removes the pair, and with it its routes and neighbours.
int opLinkDown(struct request *r, struct failure *f) {
  int index = if_nametoindex(r->argument[0]);
  if (!index) return 0;
  struct batch b = {0};
  begin(&b, RTM_DELLINK, 0, &(struct ifinfomsg){.ifi_index = index}, sizeof(struct ifinfomsg));
  return submit(&b) < 0 && errno != ENODEV ? fail(f, r->argument[0]) : 0;
}
