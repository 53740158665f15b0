#ifndef ATOLL_CRIU_CHILDREN_H
#define ATOLL_CRIU_CHILDREN_H

typedef int (*cloneCall)(int (*)(void *), void *, int, void *, ...);

// `next`: clone(2) itself.
int cloneTied(cloneCall next, int (*run)(void *), void *stack, int flags, void *argument);

#endif
