// Preloaded into CRIU beside namespace-owner.c: lets it restore a sandbox whose memory comes later (snapshot-later.c).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "memory-later.h"

static dev_t number;

// Only the host's root, or a process that opens this device, gets a userfaultfd that also serves faults in system
// calls. The process that asks for one is already in the sandbox's control group and user namespace, where the device
// can't be opened: so it inherits the open device.
__attribute__((constructor)) static void takeDevice(void) {
  struct stat facts;
  if (!getenv("ATOLL_MEMORY_LATER") || fstat(faultsDevice, &facts) < 0 || !S_ISCHR(facts.st_mode)) return;
  number = facts.st_rdev;
  fcntl(faultsDevice, F_SETFD, FD_CLOEXEC);
}

static int isDevice(int fd) {
  struct stat facts;
  return number && fd == faultsDevice && fstat(fd, &facts) == 0 && S_ISCHR(facts.st_mode) && facts.st_rdev == number;
}

// CRIU closes every descriptor that it does not know in each process that it begins to restore.
int close(int fd) {
  return isDevice(fd) ? 0 : (int)syscall(SYS_close, fd);
}

long openFaults(long flags) {
  if (!isDevice(faultsDevice)) return errno = EPERM, -1;
  long fd = ioctl(faultsDevice, USERFAULTFD_IOC_NEW, flags);
  int error = errno;
  syscall(SYS_close, faultsDevice); // the sandbox must not have it
  return errno = error, fd;
}
