// Runs a program that reads what strangers have written: as a user of its own, without rights, in a root of its own
// that holds nothing but the program and what it is shown.
//
//   helper confine PID UID CPU_SECONDS [-g GROUPS] [-s NAME PATH]... [-x PATH] [-n] -- RUNTIME ARGUMENT...
//
// PID       a process whose mount namespace the paths are in
// UID       the user and group to run as, which nobody else has
// -g        control groups to be in: their directories, separated by spaces
// -s        shows what is at PATH as /NAME, read-only, whatever its owners and modes
// -x        gives the program, as descriptor 3, the overlay's notes on the directories below PATH
// -n        leaves it the host's network
// RUNTIME   a folder that is shown as /.builder; the program is `builder` in it
//
// The program keeps the descriptors 0 to 4 and gets no environment. This process waits for it and exits with its
// status.
#define _GNU_SOURCE
#include "helper.h"
#include "groups.h"
#include <dirent.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>

enum {
  showsMax = 8,
  innerId = 65536, // the program's ID where a user namespace maps the owners of the files that it is shown
  openFilesMax = 1024,
  markFd = 3,
  depthMax = 2048,  // the longest path that the kernel takes has no more directories
  valueBytesMax = 4096,
};

static int complainOf(const char *what) {
  dprintf(2, "%s: %s\n", what, strerror(errno));
  return 120;
}

// ---- an overlay's notes on directories, which only the host's administrator can read

struct marks {
  FILE *out;
  char path[PATH_MAX];
};

static void tellMark(struct marks *m, int directory, const char *name) {
  char value[valueBytesMax];
  ssize_t n = fgetxattr(directory, name, value, sizeof value);
  if (n <= 0 || memchr(value, 0, n)) return;
  fprintf(m->out, "%s%c%s%c%.*s%c", m->path, 0, name, 0, (int)n, value, 0);
}

// Closes `fd`. Nothing changes the tree in the meantime; no link is followed.
static void tellMarks(struct marks *m, int fd, size_t length, int depth) {
  tellMark(m, fd, "trusted.overlay.opaque");
  tellMark(m, fd, "trusted.overlay.redirect");
  DIR *directory = depth < depthMax ? fdopendir(fd) : NULL;
  if (!directory) return (void)close(fd);
  for (struct dirent *e; (e = readdir(directory));) {
    if (e->d_type != DT_DIR || !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
    int n = snprintf(m->path + length, sizeof m->path - length, "%s%s", length ? "/" : "", e->d_name);
    if (n < (int)(sizeof m->path - length)) {
      int below = openat(dirfd(directory), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      if (below >= 0) tellMarks(m, below, length + n, depth + 1);
    }
    m->path[length] = 0;
  }
  closedir(directory);
}

// ---- the root

struct show {
  const char *name, *path;
  int tree;
};

struct plan {
  uid_t uid;
  int cpuSeconds, network, shows, runtime;
  struct show show[showsMax];
  char **argument;
  int fromParent, toParent;
};

static int cloneTree(const char *path, uint64_t attributes) {
  int tree = syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  struct mount_attr a = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | attributes, .propagation = MS_PRIVATE};
  if (tree >= 0 && syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &a, sizeof a) < 0) return close(tree), -1;
  return tree;
}

static int place(int tree, int root, const char *name) {
  struct stat s;
  if (fstat(tree, &s) < 0) return -1;
  int file = S_ISDIR(s.st_mode) ? -1 : openat(root, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
  if (file >= 0) close(file);
  else if (!S_ISDIR(s.st_mode) || mkdirat(root, name, 0755) < 0) return -1;
  return syscall(SYS_move_mount, tree, "", root, name, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -1 : 0;
}

static int enterRoot(struct plan *p) {
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) return complainOf("propagation");
  if (mount("none", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=64k,nr_inodes=32,mode=0755") < 0) return complainOf("root");
  int root = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (root < 0 || place(p->runtime, root, ".builder") < 0) return complainOf(".builder");
  for (int i = 0; i < p->shows; i++)
    if (place(p->show[i].tree, root, p->show[i].name) < 0) return complainOf(p->show[i].name);
  if (mkdirat(root, "proc", 0555) < 0 || fchdir(root) < 0) return complainOf("proc");
  // It shows only the program's own processes, and nothing of the kernel.
  if (mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, "subset=pid,hidepid=invisible") < 0) return complainOf("proc");
  struct mount_attr readOnly = {.attr_set = MOUNT_ATTR_RDONLY};
  if (syscall(SYS_mount_setattr, root, "", AT_EMPTY_PATH, &readOnly, sizeof readOnly) < 0) return complainOf("root");
  if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0) return complainOf("pivot_root");
  return 0;
}

// ---- rights

// The program has one capability, with which it reads the files of its job. It holds in the program's own user
// namespace alone, and so for that namespace's mounts alone. A job without files gets no capability.
static int leaveRights(struct plan *p) {
  uint32_t kept = p->shows ? 1u << CAP_DAC_READ_SEARCH : 0;
  uid_t id = p->uid;
  if (p->shows) {
    char byte = 0;
    if (unshare(CLONE_NEWUSER) < 0) return complainOf("user namespace");
    if (write(p->toParent, "u", 1) != 1 || read(p->fromParent, &byte, 1) != 1) return complainOf("user namespace");
    id = innerId;
  }
  for (int capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++)
    if (!(kept && capability == CAP_DAC_READ_SEARCH) && prctl(PR_CAPBSET_DROP, capability) < 0) return complainOf("bounding set");
  if (prctl(PR_SET_KEEPCAPS, 1) < 0 || setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0) return complainOf("user");
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2] = {{.effective = kept, .permitted = kept, .inheritable = kept}};
  if (syscall(SYS_capset, &header, data) < 0) return complainOf("capabilities");
  if (kept && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH, 0, 0) < 0) return complainOf("capabilities");
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? complainOf("no_new_privs") : 0;
}

static int limit(int resource, rlim_t value) {
  return setrlimit(resource, &(struct rlimit){value, value}) < 0 ? complainOf("limits") : 0;
}

// ---- system calls

// Calls that reading and writing files does not need. clone takes flags that ask for namespaces; clone3 hides them in
// memory.
static const int refused[] = {
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_setns, SYS_unshare, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev,
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register, SYS_keyctl, SYS_add_key, SYS_request_key,
    SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_fsopen, SYS_fsconfig,
    SYS_fsmount, SYS_fspick, SYS_open_tree, SYS_move_mount, SYS_mount_setattr, SYS_swapon, SYS_swapoff, SYS_reboot, SYS_syslog, SYS_acct, SYS_quotactl,
    SYS_pidfd_open, SYS_pidfd_getfd, SYS_process_madvise, SYS_kcmp, SYS_personality, SYS_mq_open, SYS_msgget, SYS_semget, SYS_shmget, SYS_io_setup,
    SYS_inotify_init1, SYS_fanotify_init, SYS_move_pages, SYS_migrate_pages, SYS_mbind, SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_sethostname,
    SYS_setdomainname, SYS_vhangup,
};
enum { refusedCount = sizeof refused / sizeof *refused };

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#else
#define OWN_ARCH AUDIT_ARCH_AARCH64
#endif
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, value)

static int filterCalls(int network) {
  const uint32_t namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
  struct sock_filter program[2 * refusedCount + 32];
  int n = 0;
#define ADD(...) program[n++] = (struct sock_filter)__VA_ARGS__
  ADD(LOAD(arch));
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0));
  ADD(RETURN(SECCOMP_RET_KILL_PROCESS));
  ADD(LOAD(nr));
#if defined(__x86_64__)
  ADD(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));
  ADD(RETURN(SECCOMP_RET_ERRNO | ENOSYS));
#endif
  for (int i = 0; i < refusedCount; i++) {
    ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused[i], 0, 1));
    ADD(RETURN(SECCOMP_RET_ERRNO | EPERM));
  }
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1));
  ADD(RETURN(SECCOMP_RET_ERRNO | ENOSYS));
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4));
  ADD(LOAD(args[0]));
  ADD(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, namespaces, 0, 1));
  ADD(RETURN(SECCOMP_RET_ERRNO | EPERM));
  ADD(RETURN(SECCOMP_RET_ALLOW));
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 5));
  ADD(LOAD(args[0]));
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, network ? AF_INET : 0xffff, 2, 0));
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, network ? AF_INET6 : 0xffff, 1, 0));
  ADD(RETURN(SECCOMP_RET_ERRNO | EPERM));
  ADD(RETURN(SECCOMP_RET_ALLOW));
  ADD(RETURN(SECCOMP_RET_ALLOW));
  struct sock_fprog filter = {n, program};
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) < 0 ? complainOf("seccomp") : 0;
}

// ----

static int runConfined(struct plan *p) {
  int status = 0;
  int namespaces = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | (p->network ? 0 : CLONE_NEWNET);
  if (unshare(namespaces) < 0) return complainOf("namespaces");
  if ((status = enterRoot(p)) || (status = leaveRights(p))) return status;
  // The change of user has cleared the signal that ends the program with its parent.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) return complainOf("parent");
  if ((status = limit(RLIMIT_NOFILE, openFilesMax)) || (status = limit(RLIMIT_CORE, 0)) || (status = limit(RLIMIT_MSGQUEUE, 0)) || (status = limit(RLIMIT_CPU, p->cpuSeconds))) return status;
  if ((status = filterCalls(p->network))) return status;
  if (syscall(SYS_close_range, 5, ~0U, 0) < 0) return complainOf("close_range");
  static char *const empty[] = {NULL};
  execve("/.builder/builder", p->argument, empty);
  return complainOf("/.builder/builder");
}

static int writeFile(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC), result = fd < 0 || write(fd, text, strlen(text)) < 0 ? -1 : 0;
  if (fd >= 0) close(fd);
  return result;
}

// The files that it is shown belong to IDs below 65536; the program's own ID comes after those.
static int mapIds(pid_t pid, uid_t uid) {
  char map[64], path[64];
  snprintf(map, sizeof map, "0 0 %d\n%d %u 1\n", innerId, innerId, uid);
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "/proc/%d/%s", pid, i ? "gid_map" : "uid_map");
    if (writeFile(path, map) < 0) return -1;
  }
  return 0;
}

static int waitFor(pid_t pid) {
  int status;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return complainOf("wait");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int confine(char **argument) {
  struct plan p = {.uid = strtoul(argument[1], NULL, 10), .cpuSeconds = atoi(argument[2])};
  char path[64];
  const char *marked = NULL;
  struct groups groups = {.directory = -1};
  // Descriptors 0 to 4 are the program's: they are filled even if it was given nothing for them.
  int taken = open("/dev/null", O_RDWR);
  while (taken >= 0 && taken < 4) taken = dup(taken);
  if (taken > 4) close(taken);
  snprintf(path, sizeof path, "/proc/%s/ns/mnt", argument[0]);
  int mounts = open(path, O_RDONLY | O_CLOEXEC);
  char **a = argument + 3;
  for (; *a && strcmp(*a, "--"); a++) {
    if (!strcmp(*a, "-n")) p.network = 1;
    else if (!strcmp(*a, "-g") && a[1]) {
      if (openGroups(&groups, *++a) < 0) return complainOf(*a);
    } else if (!strcmp(*a, "-x") && a[1]) marked = *++a;
    else if (!strcmp(*a, "-s") && a[1] && a[2] && p.shows < showsMax) p.show[p.shows++] = (struct show){a[1], a[2], -1}, a += 2;
    else return dprintf(2, "confine: %s\n", *a), 2;
  }
  if (!*a || !a[1] || p.uid <= innerId || mounts < 0) return dprintf(2, "usage: confine PID UID CPU_SECONDS ... -- RUNTIME ARGUMENT...\n"), 2;
  p.argument = a + 1;
  if (setns(mounts, CLONE_NEWNS) < 0) return complainOf("mount namespace");
  if ((p.runtime = cloneTree(p.argument[0], 0)) < 0) return complainOf(p.argument[0]);
  for (int i = 0; i < p.shows; i++)
    if ((p.show[i].tree = cloneTree(p.show[i].path, MOUNT_ATTR_NOEXEC)) < 0) return complainOf(p.show[i].path);
  int tree = marked ? open(marked, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  int marks[2], up[2], down[2];
  if ((marked && tree < 0) || pipe2(marks, O_CLOEXEC) < 0 || pipe2(up, O_CLOEXEC) < 0 || pipe2(down, O_CLOEXEC) < 0) return complainOf("pipes");
  p.toParent = up[1], p.fromParent = down[0];
  if (unshare(CLONE_NEWPID) < 0) return complainOf("process namespace");
  pid_t pid = forkInto(&groups);
  if (pid < 0) return complainOf("fork");
  if (pid == 0) {
    if (enterGroups(&groups) < 0) _exit(complainOf("control groups"));
    // The end of this pipe tells the child that its parent was killed.
    close(up[0]), close(down[1]), close(marks[1]);
    if (marked && dup2(marks[0], markFd) < 0) _exit(complainOf("marks"));
    _exit(runConfined(&p));
  }
  close(up[1]), close(down[0]), close(marks[0]);
  // This process closes its copies of the program's descriptors: otherwise the program's output would never end.
  int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd <= 4; fd++)
    if (fd != 2 && nothing >= 0) dup2(nothing, fd);
  char byte;
  if (p.shows && read(up[0], &byte, 1) == 1 && (mapIds(pid, p.uid) < 0 || write(down[1], "m", 1) != 1)) kill(pid, SIGKILL);
  signal(SIGPIPE, SIG_IGN);
  limit(RLIMIT_NOFILE, depthMax + 64);
  struct marks m = {.out = fdopen(marks[1], "w")};
  if (marked && m.out) tellMarks(&m, tree, 0, 0);
  if (m.out) fclose(m.out);
  return waitFor(pid);
}
