// What memory-later.c shares with the programs that begin restores.
#pragma once

// The descriptor of /dev/userfaultfd that a restoring CRIU is started with. It is so high that few processes have a
// file there. If a process of the sandbox has one, the restore fails before anything has run.
enum { faultsDevice = 1000 };

// A userfaultfd for a process that is restored; -1 and errno.
long openFaults(long flags);
