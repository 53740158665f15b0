// The parts of process 1 of a sandbox (init.c) that start programs for the agent.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Writes to stderr, at most 512 bytes.
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

// ---- program.c

// Bits of `flags`; src/agent/process/spawner.ts has the same numbers.
enum { programSession = 1 /* a session of its own, else only a process group */, programTerminal = 2 };

enum { programFdsMax = 3 };

// A program to start, with everything resolved: the only name that is still looked up is the program's, in its own
// PATH.
struct program {
  uid_t uid;
  gid_t gid;
  uint32_t flags;
  size_t groupCount;
  const gid_t *groups;
  const char *cwd;
  char **argv;        // at least one, NULL behind them
  char **environment; // NULL behind them
  // stdout, stderr and, where it has one, stdin; with programTerminal the master of its terminal
  int fds[programFdsMax];
  int fdCount;
};

// Starts it as a child. Errors after that are written to its own stderr, and its exit status is then 126 or 127, as in
// a shell. Answers -1 with errno if there can be no child.
pid_t startProgram(const struct program *program);

// ---- naming.c

// Called by process 1 of a sandbox that is named later: otherwise the other two have no effect.
void allowNaming(void);
// Gives the sandbox its host name if process 1 may, and gives that right up.
void nameSandbox(const char *name, size_t length);
// Called by children of process 1 before they do anything.
void giveUpNaming(void);

// ---- spawner.c

// Ends of the channel with one agent.
struct channel {
  int requests; // a socket; -1: there is no agent
  int replies;  // the write end of a pipe
};

// The descriptors at which the agent gets its ends of a channel, and the one that it closes when it serves.
enum { agentRequestsFd = 4, agentRepliesFd = 5, agentSignFd = 6 };

// Makes a channel. `agentEnds`: requests and replies, for the agent. Answers 0, or -1 with errno.
int openChannel(struct channel *channel, int agentEnds[2]);
void closeChannel(struct channel *channel);
// True while an answer waits for the agent to read: until then, receive nothing and reap no child.
int mustWait(const struct channel *channel);
// Sends the answer that waits, if there is room now.
void sendWaiting(struct channel *channel);
// Receives requests, and starts or signals programs. False: the agent has closed its end.
int receiveRequests(struct channel *channel);
// Reports to the agent the end of a program that it, or an agent before it, has started; it reports no others.
void reportEnd(struct channel *channel, pid_t pid, int status);
// Answers a start that was under way when the registers were lost (init.c, surviveBreakpoints).
void finishStart(struct channel *channel);
