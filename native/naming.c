// The right to give the sandbox its host name, on hosts that can't do it from outside (gVisor): only process 1 has it,
// until the sandbox has its name. Programs of the sandbox never have it.
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "spawner.h"

// linux/capability.h, which musl does not bring.
enum { version3 = 0x20080522, sysAdmin = 21 };
struct capabilityHead { uint32_t version; int pid; };
struct capabilitySets { uint32_t effective, permitted, inheritable; };

// In any other sandbox the name would be the host's own.
static int mayName;

void allowNaming(void) { mayName = 1; }

void giveUpNaming(void) {
  if (!mayName) return;
  mayName = 0;
  struct capabilityHead head = { version3, 0 };
  struct capabilitySets sets[2]; // the first has the lower 32
  // Changes nothing if the process never had the right.
  prctl(PR_CAPBSET_DROP, sysAdmin);
  if (syscall(SYS_capget, &head, sets)) return;
  uint32_t others = ~(UINT32_C(1) << sysAdmin);
  sets[0].effective &= others, sets[0].permitted &= others, sets[0].inheritable &= others;
  syscall(SYS_capset, &head, sets);
}

void nameSandbox(const char *name, size_t length) {
  if (!mayName) return;
  if (sethostname(name, length)) say("init: the host name can't be set\n");
  giveUpNaming();
}
