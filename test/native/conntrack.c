// Asks for the tracked connections of its network namespace as CRIU does, loaded with native/criu-conntrack.c. Prints
// the request, the number of connections, and whether the list ended.
#include <linux/netlink.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void) {
  struct { struct nlmsghdr header; char rest[4]; } request = {{sizeof request, 0x101, NLM_F_REQUEST | NLM_F_DUMP, 24680, 0}, {0}};
  struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
  struct iovec part = {&request, sizeof request};
  struct msghdr message = {.msg_name = &kernel, .msg_namelen = sizeof kernel, .msg_iov = &part, .msg_iovlen = 1};
  int fd = socket(AF_NETLINK, SOCK_RAW, 12 /* NETLINK_NETFILTER */), heard = 0, isDone = 0;
  if (fd < 0 || sendmsg(fd, &message, 0) < 0) return perror("ask"), 1;
  static char answer[1 << 16] __attribute__((aligned(8)));
  while (!isDone) {
    int size = (int)recv(fd, answer, sizeof answer, 0);
    if (size <= 0) return perror("hear"), 1;
    for (struct nlmsghdr *h = (void *)answer; NLMSG_OK(h, size); h = NLMSG_NEXT(h, size))
      if (h->nlmsg_type == NLMSG_DONE) isDone = 1;
      else if (h->nlmsg_type == NLMSG_ERROR) return printf("error\n"), 1;
      else heard++;
  }
  return printf("%x %d\n", request.header.nlmsg_type, heard) < 0;
}
