// Reading the kernel's answers over netlink.
#pragma once
#include <linux/netlink.h>
#include <sys/types.h>

// Whether a whole message begins at `h`, with `left` bytes of the datagram there. NLMSG_NEXT may make `left` negative,
// which NLMSG_OK with an unsigned length would take for very much.
static inline int isWholeMessage(const struct nlmsghdr *h, ssize_t left) {
  return left >= (ssize_t)sizeof *h && h->nlmsg_len >= sizeof *h && h->nlmsg_len <= (size_t)left;
}
