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

// A program to start, with everything resolved: no name is looked up any more but the program's in its own PATH.
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

// Starts it as a child. What goes wrong after that is written to its own stderr, and its exit status is 126 or 127, as a
// shell has it. Answers -1 with errno where there can be no child.
pid_t startProgram(const struct program *program);

// ---- naming.c

// Called by process 1 of a sandbox that is named later: without it the others have no effect.
void allowNaming(void);
// Gives the sandbox its host name, where process 1 may, and gives that right up.
void nameSandbox(const char *name, size_t length);
// To be called by children of process 1 before they do anything.
void giveUpNaming(void);

// ---- spawner.c

// Ends of the channel with one agent.
struct channel {
  int requests; // a socket; -1: there is no agent
  int replies;  // the write end of a pipe
};

// What the agent gets of a channel, at these descriptors; and what it closes when it serves.
enum { agentRequestsFd = 4, agentRepliesFd = 5, agentSignFd = 6 };

// Makes a channel. `agentEnds`: requests and replies, for the agent. Answers 0, or -1 with errno.
int openChannel(struct channel *channel, int agentEnds[2]);
void closeChannel(struct channel *channel);
// True while an answer waits for the agent to read: then nothing is to be received and no child to be reaped.
int mustWait(const struct channel *channel);
// Sends what waits, if there is room now.
void sendWaiting(struct channel *channel);
// Receives what has come, and starts or signals programs. False: the agent has closed its end.
int receiveRequests(struct channel *channel);
// Tells the agent the end of a program that it, or one before it, has started; others' are not its business.
void reportEnd(struct channel *channel, pid_t pid, int status);
// Answers a start that was under way when the registers were lost (init.c, surviveBreakpoints).
void finishStart(struct channel *channel);
