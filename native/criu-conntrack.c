// Preloaded into CRIU beside namespace-owner.c. Before CRIU dumps a network namespace, it lists the tracked
// connections twice. The kernel keeps those of all namespaces in one table, which is large on a large host, and walks
// all of it: 10 ms each time, although the namespace is dumped empty and gets a new link. This library makes CRIU ask
// for unconfirmed connections instead: they are in no table, and the answer is empty.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <sys/socket.h>

static int listsConnections(const struct nlmsghdr *request) {
  return request->nlmsg_type == (NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET) && (request->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
}

ssize_t sendmsg(int socket, const struct msghdr *message, int flags) {
  static ssize_t (*next)(int, const struct msghdr *, int);
  if (!next) next = (ssize_t(*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg");
  const struct sockaddr_nl *to = message->msg_name;
  if (!to || message->msg_namelen != sizeof *to || to->nl_family != AF_NETLINK || message->msg_iovlen != 1 || !getenv("ATOLL_CRIU_SOCKET"))
    return next(socket, message, flags);
  struct nlmsghdr *request = message->msg_iov->iov_base;
  // Messages about routes and sockets have no type with this number.
  if (message->msg_iov->iov_len >= sizeof *request && listsConnections(request)) request->nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET_UNCONFIRMED;
  return next(socket, message, flags);
}
