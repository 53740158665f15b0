// Compiles a seccomp profile by libseccomp, for this machine's architecture or another.
//
//   compile ARCHITECTURE PROFILE OUTPUT       writes the filter, an array of struct sock_filter, to OUTPUT
//
// PROFILE is a file whose lines each have one of these forms:
//   default ERRNO                                        the error of all other calls; the first line
//   allow NAME [INDEX OPERATOR VALUE VALUE]...           a system call if all comparisons hold; operators: eq, ne,
// masked
//   refuse ERRNO NAME [INDEX OPERATOR VALUE VALUE]...
//   number NAME                                          prints `NAME NUMBER`; -1: the architecture has no such call
// A call that the architecture does not have is left out. So is one that libseccomp does not know; standard error
// names it.
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { argumentsMax = 6, wordsMax = 3 + argumentsMax * 4, lineBytesMax = 1024 };

// SECCOMP_RET_KILL_PROCESS, since Linux 4.14 (seccomp_api_get(3)).
enum { apiLevel = 3 };

static uint32_t architecture;

static void stop(const char *what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}

static int resolve(const char *name) {
  int number = seccomp_syscall_resolve_name_arch(architecture, name);
  if (number == __NR_SCMP_ERROR) fprintf(stderr, "libseccomp does not know %s\n", name);
  return number == __NR_SCMP_ERROR || number < 0 ? -1 : number;
}

static enum scmp_compare operatorOf(const char *name) {
  if (!strcmp(name, "eq")) return SCMP_CMP_EQ;
  if (!strcmp(name, "ne")) return SCMP_CMP_NE;
  if (!strcmp(name, "masked")) return SCMP_CMP_MASKED_EQ;
  return errno = EINVAL, stop(name), SCMP_CMP_EQ;
}

static void addRule(scmp_filter_ctx filter, uint32_t action, char **word, int words) {
  struct scmp_arg_cmp comparison[argumentsMax];
  int count = (words - 1) / 4, number = resolve(word[0]);
  if ((words - 1) % 4 || count > argumentsMax) errno = EINVAL, stop(word[0]);
  if (number < 0) return;
  for (int i = 0; i < count; i++) {
    char **field = word + 1 + i * 4;
    comparison[i] = (struct scmp_arg_cmp){strtoul(field[0], NULL, 10), operatorOf(field[1]), strtoull(field[2], NULL, 10), strtoull(field[3], NULL, 10)};
  }
  // libseccomp takes the numbers of this machine and translates them.
  int error = seccomp_rule_add_exact_array(filter, action, seccomp_syscall_resolve_name(word[0]), count, comparison);
  if (error) errno = -error, stop(word[0]);
}

static scmp_filter_ctx begin(uint32_t errnoOfDefault) {
  // The filter is for all kernels that Atoll runs on, whatever this one can do: the machine that builds it may be
  // emulated.
  if (seccomp_api_set(apiLevel)) errno = EINVAL, stop("seccomp_api_set");
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(errnoOfDefault));
  if (!filter) errno = ENOMEM, stop("seccomp_init");
  int error = 0;
  if (architecture != seccomp_arch_native()) {
    error = seccomp_arch_add(filter, architecture);
    if (!error) error = seccomp_arch_remove(filter, SCMP_ARCH_NATIVE);
  }
  // Numbers of a call that comes through another architecture's entry mean other calls.
  if (!error) error = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  // A binary tree: a call is found among hundreds in a few steps.
  if (!error) error = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
  if (error) errno = -error, stop("libseccomp");
  return filter;
}

int main(int arguments, char **argument) {
  if (arguments != 4) return fprintf(stderr, "usage: compile ARCHITECTURE PROFILE OUTPUT\n"), 2;
  architecture = seccomp_arch_resolve_name(argument[1]);
  if (!architecture) errno = EINVAL, stop(argument[1]);
  FILE *profile = fopen(argument[2], "re");
  if (!profile) stop(argument[2]);
  scmp_filter_ctx filter = NULL;
  char line[lineBytesMax];
  while (fgets(line, sizeof line, profile)) {
    char *word[wordsMax + 1], *rest = line;
    int words = 0;
    while (words <= wordsMax && (word[words] = strtok_r(rest, " \n", &rest))) words++;
    if (words < 2 || words > wordsMax || !strchr("darn", *word[0])) errno = EINVAL, stop(line);
    if (!strcmp(word[0], "default") && !filter) filter = begin(strtoul(word[1], NULL, 10));
    else if (!strcmp(word[0], "number")) printf("%s %d\n", word[1], resolve(word[1]));
    else if (!strcmp(word[0], "allow") && filter) addRule(filter, SCMP_ACT_ALLOW, word + 1, words - 1);
    else if (!strcmp(word[0], "refuse") && filter && words > 2) addRule(filter, SCMP_ACT_ERRNO(strtoul(word[1], NULL, 10)), word + 2, words - 2);
    else errno = EINVAL, stop(word[0]);
  }
  int output = open(argument[3], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (output < 0) stop(argument[3]);
  int error = filter ? seccomp_export_bpf(filter, output) : -EINVAL;
  if (error) errno = -error, stop("seccomp_export_bpf");
  if (close(output) < 0) stop(argument[3]);
  fclose(profile);
  seccomp_release(filter);
  return 0;
}
