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
#include <stdbool.h>
#include <sys/socket.h>

// Several netlink requests that are sent together; each is acknowledged.
struct batch {
  char data[4096];
  int length;
  int messages;
  struct nlmsghdr *last;
};

// A batch has a fixed form: one that does not fit is a mistake in this file.
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

// Reads until `left` requests were acknowledged. Answers the first error that the kernel reports.
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

// Forwards packets that come in by the link, whatever the host does for other interfaces.
static void addForwarding(struct batch *b, int index) {
  const uint32_t on = 1;
  begin(b, RTM_NEWLINK, 0, &(struct ifinfomsg){.ifi_index = index}, sizeof(struct ifinfomsg));
  struct rtattr *families = put(b, IFLA_AF_SPEC, NULL, 0), *inet = put(b, AF_INET, NULL, 0), *settings = put(b, IFLA_INET_CONF, NULL, 0);
  put(b, IPV4_DEVCONF_FORWARDING, &on, 4);
  closeNest(b, settings), closeNest(b, inet), closeNest(b, families);
}

// Fixed neighbours on both ends, which are IFF_NOARP: neither end asks for a neighbour, and the host neither answers
// questions for its addresses nor believes anybody who claims one. The flag comes before the neighbours, because
// changing it clears them.
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

// The IPv6 of a link: `outer` stands for the sandbox on the host.
struct ipv6 {
  struct in6_addr outer, inner, gateway;
};

// Changes one setting of a link in the current network namespace. False if this kernel does not have it.
static bool setIpv6(const char *name, const char *setting, const char *value) {
  char path[96];
  snprintf(path, sizeof path, "/proc/sys/net/ipv6/conf/%s/%s", name, setting);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool done = write(fd, value, strlen(value)) > 0;
  if (!done) perror(path);
  close(fd);
  return done;
}

// Runs before the link is up: the link then takes no address by itself, and believes no router.
static void enableIpv6(const char *name) {
  setIpv6(name, "addr_gen_mode", "1"), setIpv6(name, "accept_ra", "0"), setIpv6(name, "accept_redirects", "0");
  setIpv6(name, "disable_ipv6", "0");
}

static void addNeighbourV6(struct batch *b, int index, const struct in6_addr *address, const uint8_t *mac) {
  struct ndmsg n = {.ndm_family = AF_INET6, .ndm_ifindex = index, .ndm_state = NUD_PERMANENT};
  begin(b, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, &n, sizeof n);
  put(b, NDA_DST, address, sizeof *address), put(b, NDA_LLADDR, mac, 6);
}

// `destination` NULL: a default route.
static void addRouteV6(struct batch *b, int index, const struct in6_addr *destination, const struct in6_addr *gateway) {
  struct rtmsg m = {.rtm_family = AF_INET6, .rtm_dst_len = destination ? 128 : 0, .rtm_table = RT_TABLE_MAIN, .rtm_protocol = RTPROT_STATIC,
                    .rtm_scope = RT_SCOPE_UNIVERSE, .rtm_type = RTN_UNICAST, .rtm_flags = RTNH_F_ONLINK};
  begin(b, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &m, sizeof m);
  if (destination) put(b, RTA_DST, destination, sizeof *destination);
  put(b, RTA_GATEWAY, gateway, sizeof *gateway), put(b, RTA_OIF, &index, 4);
}

static void disableIpv6(const char *name) {
  setIpv6(name, "disable_ipv6", "1"); // a failure means that this kernel has no IPv6
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

static int configureOuter(const char *name, in_addr_t slot, in_addr_t inner, const uint8_t *innerMac, const struct ipv6 *v6) {
  int index = if_nametoindex(name);
  if (v6) enableIpv6(name), setIpv6(name, "force_forwarding", "1"); // kernels without it forward for all links or none
  else disableIpv6(name);
  struct batch b = {0};
  addUp(&b, index, IFF_NOARP), addForwarding(&b, index), addNeighbour(&b, index, inner, innerMac), addRoute(&b, index, &slot, inner);
  if (v6) addNeighbourV6(&b, index, &v6->inner, innerMac), addRouteV6(&b, index, &v6->outer, &v6->inner);
  return submit(&b);
}

static int configureInner(in_addr_t inner, in_addr_t gateway, const uint8_t *outerMac, const struct ipv6 *v6) {
  int index = if_nametoindex("eth0"), loopback = if_nametoindex("lo");
  if (v6) enableIpv6("eth0");
  else disableIpv6("eth0");
  struct batch b = {0};
  addUp(&b, loopback, 0);
  struct ifaddrmsg a = {.ifa_family = AF_INET, .ifa_prefixlen = 30, .ifa_index = index};
  begin(&b, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, &a, sizeof a);
  put(&b, IFA_LOCAL, &inner, 4), put(&b, IFA_ADDRESS, &inner, 4);
  addUp(&b, index, IFF_NOARP), addNeighbour(&b, index, gateway, outerMac), addRoute(&b, index, NULL, gateway);
  if (!v6) return submit(&b);
  // No other machine can have this address, so the kernel need not look for a duplicate.
  struct ifaddrmsg a6 = {.ifa_family = AF_INET6, .ifa_prefixlen = 128, .ifa_flags = IFA_F_NODAD, .ifa_index = index};
  begin(&b, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, &a6, sizeof a6);
  put(&b, IFA_LOCAL, &v6->inner, sizeof v6->inner);
  addNeighbourV6(&b, index, &v6->gateway, outerMac), addRouteV6(&b, index, NULL, &v6->gateway);
  return submit(&b);
}

static int parseIpv6(char **argument, struct ipv6 *v6) {
  bool parsed = inet_pton(AF_INET6, argument[0], &v6->outer) == 1 && inet_pton(AF_INET6, argument[1], &v6->inner) == 1 &&
                inet_pton(AF_INET6, argument[2], &v6->gateway) == 1;
  return parsed ? 0 : (errno = EINVAL, -1);
}

// link-up pid name slotAddress innerAddress gateway outerMac innerMac mtu [slotAddress innerAddress gateway]: connects
// a sandbox with the host. Inside, every sandbox has the same address; outside, `slotAddress` stands for it. The last
// three are the IPv6 ones; without them the link has no IPv6.
int opLinkUp(struct request *r, struct failure *f) {
  char path[64], *name = r->argument[1];
  uint8_t outerMac[6], innerMac[6];
  in_addr_t slot = inet_addr(r->argument[2]), inner = inet_addr(r->argument[3]), gateway = inet_addr(r->argument[4]);
  if (parseMac(r->argument[5], outerMac) < 0 || parseMac(r->argument[6], innerMac) < 0) return fail(f, "link-layer address");
  struct ipv6 parts, *v6 = r->arguments >= 11 ? &parts : NULL;
  if (v6 && parseIpv6(r->argument + 8, v6) < 0) return fail(f, "IPv6 address");
  snprintf(path, sizeof path, "/proc/%s/ns/net", r->argument[0]);
  int netns = open(path, O_RDONLY | O_CLOEXEC), own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), result = -1;
  if (netns < 0 || own < 0) fail(f, "network namespace");
  else if (makePair(name, outerMac, "eth0", innerMac, netns, atoi(r->argument[7])) < 0) fail(f, "veth");
  else if (configureOuter(name, slot, inner, innerMac, v6) < 0) fail(f, "outer end");
  else if (setns(netns, CLONE_NEWNET) < 0) fail(f, "setns");
  else {
    result = configureInner(inner, gateway, outerMac, v6) < 0 ? fail(f, "inner end") : 0;
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

// access-up outerPid innerPid outerAddress innerAddress outerMac innerMac mtu: makes a pair between the networks of
// two processes, which leads nowhere else: the way to a sandbox that has a network stack of its own instead of the
// kernel's.
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
