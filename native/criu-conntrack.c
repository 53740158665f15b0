// Preloaded into CRIU beside namespace-owner.c. Before it dumps a network namespace, CRIU lists its tracked connections
// twice. The kernel keeps those of all namespaces in one table, which is large on a large host, and goes through all of
// it: 10 ms each time, for a namespace that is dumped empty and gets a new link. So CRIU asks for those that are not
// confirmed yet, which no table has, and hears of none.
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
  // A number of its own among those of routes and of sockets, which have no such kind of message.
  if (message->msg_iov->iov_len >= sizeof *request && listsConnections(request)) request->nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET_UNCONFIRMED;
  return next(socket, message, flags);
}
