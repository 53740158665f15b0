// Removes what clients name in a volume that sandboxes may be changing.
#define _GNU_SOURCE
#include "helper.h"
#include "remove-tree.h"
#include <linux/openat2.h>
#include <sys/syscall.h>

enum { triesMax = 20 };

static int complain(const char *what) {
  dprintf(2, "%d %s: %s\n", errno, what, strerror(errno));
  return 1;
}

// remove-beneath ROOT PATH: removes the entry, with all below it. PATH is clean and relative; no link on the way leads
// out of ROOT, and a link at the end is removed itself. On failure, the first word printed is the errno.
int removeBeneath(const char *root, const char *path) {
  char parent[4096];
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  if (snprintf(parent, sizeof parent, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".") >= (int)sizeof parent) return errno = ENAMETOOLONG, complain(path);
  int top = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (top < 0) return complain(root);
  struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
  int directory, tries = 0;
  // EAGAIN: somebody renames something meanwhile, and the kernel can't tell whether a `..` on the way leads out.
  do directory = syscall(SYS_openat2, top, parent, &how, sizeof how);
  while (directory < 0 && errno == EAGAIN && ++tries < triesMax);
  if (directory < 0) return complain(parent);
  if (unlinkat(directory, name, 0) == 0) return 0;
  if (errno != EISDIR) return complain(name);
  return removeTree(directory, name);
}
