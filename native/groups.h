// The control groups of a process that is about to start: groups.c.
#pragma once
#include <linux/sched.h>
#include <sys/types.h>

enum { groupsMax = 32 };

struct groups {
  int fd[groupsMax]; // a process that writes 0 there joins the group
  int count;
  int directory; // of the only group, under version 2; else -1
};

// Opens groups by their directories, separated by spaces; NULL: none. Answers 0, or -1 with errno and nothing open.
int openGroups(struct groups *, const char *directories);
// Makes the process of this clone3(2) be born in the group, under version 2.
void bearIn(const struct groups *, struct clone_args *);
// Like fork(2). The child has to call `enterGroups` before it makes a thread or a process. Closes the groups in the
// parent.
pid_t forkInto(struct groups *);
// For the new process, whatever rights it has. Enters the groups unless it was born in them. Closes them.
int enterGroups(struct groups *);
void closeGroups(struct groups *);
