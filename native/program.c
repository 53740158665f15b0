// Starts one program of a sandbox: as its user, in its place below the agent, with its pipes or its terminal.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "spawner.h"

extern char **environ;

// Programs come after the agent when the sandbox is short of processor time or memory.
enum { programNice = 5, programOomScoreAdj = 500 };

static _Noreturn void cannotRun(const char *program, int error) {
  say("sh: %s: %s\n", program, error == ENOENT ? "not found" : strerror(error));
  _exit(error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG ? 127 : 126);
}

// The shell runs an executable text without "#!" as its script, as execvp(3) and every shell do.
static void runFile(const char *path, char **argv, char **environment) {
  execve(path, argv, environment);
  if (errno != ENOEXEC) return;
  int count = 0;
  while (argv[count]) count++;
  char **script = calloc(count + 2, sizeof *script);
  if (!script) return;
  script[0] = "sh";
  script[1] = (char *)path;
  for (int i = 1; i <= count; i++) script[i + 1] = argv[i];
  execve("/bin/sh", script, environment);
  errno = ENOEXEC;
}

static const char *pathIn(char **environment) {
  for (; *environment; environment++) if (!strncmp(*environment, "PATH=", 5)) return *environment + 5;
  return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
}

// Searches the PATH of the new process, not of the agent. A program that is found but can't be run wins over "not
// found".
static _Noreturn void runProgram(char **argv, char **environment) {
  const char *name = argv[0];
  if (!*name) cannotRun("''", ENOENT);
  if (strchr(name, '/')) {
    runFile(name, argv, environment);
    cannotRun(name, errno);
  }
  const char *search = pathIn(environment);
  int error = ENOENT;
  for (;;) {
    size_t length = strcspn(search, ":");
    char path[4096];
    int size = snprintf(path, sizeof path, "%.*s/%s", length ? (int)length : 1, length ? search : ".", name);
    if (size < (int)sizeof path) {
      runFile(path, argv, environment);
      if (errno != ENOENT && errno != ENOTDIR) error = errno;
    }
    search += length;
    if (!*search) break;
    search++;
  }
  cannotRun(name, error);
}

static int writeScore(void) {
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  int length = dprintf(fd, "%d", programOomScoreAdj);
  close(fd);
  return length;
}

// The sandbox's users can't take all processes that its limit allows: the agent can start a command even when they
// have forked all they can. Such a command gets a few more processes and a better priority.
enum { processesKept = 256, processesOfCommand = 32, rescueNice = -5 };

// Reads a number from the sandbox's control group, of either version; 0: there is no such file, or no limit.
static rlim_t groupNumber(const char *name) {
  static const char *const folders[] = { "/sys/fs/cgroup/pids", "/sys/fs/cgroup" };
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    char path[64], text[24] = "";
    snprintf(path, sizeof path, "%s/%s", folders[i], name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    return length > 0 ? strtoul(text, NULL, 10) : 0;
  }
  return 0;
}

// Answers the niceness of the command. The limit counts the processes of one user; it can't be raised again.
static int limitProcesses(void) {
  rlim_t most = groupNumber("pids.max"), now = groupNumber("pids.current");
  struct rlimit limit;
  if (most <= processesKept || getrlimit(RLIMIT_NPROC, &limit)) return programNice;
  rlim_t ofUsers = most - processesKept, wanted = now + processesOfCommand > ofUsers ? now + processesOfCommand : ofUsers;
  if (wanted < limit.rlim_max) limit.rlim_cur = limit.rlim_max = wanted;
  if (setrlimit(RLIMIT_NPROC, &limit)) errno = 0;
  return now > most / 2 ? rescueNice : programNice;
}

static void controlTerminal(int master, uid_t uid) {
  int unlocked = 0;
  unsigned number;
  if (ioctl(master, TIOCSPTLCK, &unlocked) || ioctl(master, TIOCGPTN, &number)) { say("no terminal: %s\n", strerror(errno)); _exit(126); }
  char path[32];
  snprintf(path, sizeof path, "/dev/pts/%u", number);
  int slave = open(path, O_RDWR | O_NOCTTY);
  if (slave < 0 || ioctl(slave, TIOCSCTTY, 0)) { say("no terminal: %s: %s\n", path, strerror(errno)); _exit(126); }
  // The terminal belongs to the user, as login(1) leaves it, so that programs can open it again by its name.
  struct stat facts;
  if (fstat(slave, &facts) || fchown(slave, uid, facts.st_gid) || fchmod(slave, 0620)) errno = 0;
  for (int fd = 0; fd < 3; fd++) dup2(slave, fd);
}

// A program may open its own pipes again, as a script does that writes to /dev/stdout.
static void takePipes(const struct program *program) {
  int null = program->fdCount < 3 ? open("/dev/null", O_RDWR) : -1;
  if (null >= 0) dup2(null, 0);
  for (int i = 0; i < program->fdCount; i++) {
    int fd = (i + 1) % 3; // stdout, stderr, stdin
    dup2(program->fds[i], fd);
    if (fchown(fd, program->uid, program->gid)) errno = 0;
  }
}

// Makes the system calls directly: the C library's functions would involve other threads of the process.
static void becomeUser(const struct program *program) {
  if (syscall(SYS_setgroups, program->groupCount, program->groups)) { say("cannot set the groups: %s\n", strerror(errno)); _exit(126); }
  if (syscall(SYS_setgid, program->gid) || syscall(SYS_setuid, program->uid)) { say("cannot become the user: %s\n", strerror(errno)); _exit(126); }
}

static _Noreturn void becomeProgram(const struct program *program) {
  // After a breakpoint, process 1 goes on where it was (init.c, surviveBreakpoints). Its copy would then serve beside
  // it.
  signal(SIGTRAP, SIG_DFL);
  // Nobody hears a complaint before the program's own stderr is in place.
  umask(022);
  writeScore();
  setpriority(PRIO_PROCESS, 0, limitProcesses());
  if (program->flags & programSession) setsid();
  else setpgid(0, 0);
  if (program->flags & programTerminal) controlTerminal(program->fds[0], program->uid);
  else takePipes(program);
  // Process 1's own descriptors: its state holds the sandbox's tokens.
  syscall(SYS_close_range, 3, ~0U, 0);
  if (chdir(program->cwd)) { say("sh: cannot enter %s: %s\n", program->cwd, strerror(errno)); _exit(126); }
  becomeUser(program);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  runProgram(program->argv, program->environment);
}

pid_t startProgram(const struct program *program) {
  pid_t pid = fork();
  if (pid == 0) becomeProgram(program);
  return pid;
}
