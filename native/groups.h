// The control groups of a process that is about to start: groups.c.
#pragma once
#include <linux/sched.h>
#include <sys/types.h>

enum { groupsMax = 32 };

struct groups {
  int fd[groupsMax]; // who writes 0 there is in the group
  int count;
  int directory; // of the only one, under version 2; else -1
};

// Opens groups by their directories, with spaces between them; NULL: none. Answers 0, or -1 with errno and nothing open.
int openGroups(struct groups *, const char *directories);
// Has a process that is made with these arguments be born in the group, where there is such a thing.
void bearIn(const struct groups *, struct clone_args *);
// As fork. The child has to call `enterGroups` before it makes a thread or a process. Closes them in the parent.
pid_t forkInto(struct groups *);
// In the new process, whatever rights it has. Where it was not born in them, it enters. Closes them.
int enterGroups(struct groups *);
void closeGroups(struct groups *);
