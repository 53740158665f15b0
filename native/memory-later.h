// What memory-later.c shares with those who begin restores.
#pragma once

// The descriptor of /dev/userfaultfd that a CRIU which restores is started with. High enough for few processes to have a
// file there. Where one has, the restore fails, and nothing has run.
enum { faultsDevice = 1000 };

// A userfaultfd for a process that is restored; -1 and errno.
long openFaults(long flags);
