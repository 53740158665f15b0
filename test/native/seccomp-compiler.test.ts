import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { repository } from '../support/platform.ts';
import { runToEnd } from '../support/process.ts';

const folder = mkdtempSync(join(tmpdir(), 'atoll-seccomp-compiler-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a program in which seccomp(2) fails, as on emulated machines and in some containers that build. */
const withoutSeccomp = `
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **argument) {
  struct sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_seccomp, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {4, code};
  if (count < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 9;
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 9;
  return execv(argument[1], argument + 1), 9;
}
`;

async function compiled(name: string, ...argv: string[]): Promise<string> {
  const output = join(folder, name);
  const { exitCode, stderr } = await runToEnd(['gcc', '-o', output, ...argv]);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  return output;
}

test('a filter is the same, whatever the kernel can do of the machine that compiles it', async () => {
  writeFileSync(join(folder, 'without.c'), withoutSeccomp);
  const without = await compiled('without', join(folder, 'without.c'));
  const compiler = await compiled('compile', join(repository, 'native/seccomp/compile.c'), '-lseccomp');
  const profile = join(folder, 'profile');
  writeFileSync(profile, 'default 1\nallow read\nallow socket 0 ne 16 0\n');
  for (const architecture of ['x86_64', 'aarch64']) {
    const outputs = ['here', 'there'].map(place => join(folder, `${architecture}-${place}`));
    const [here = '', there = ''] = outputs;
    expect(await runToEnd([compiler, architecture, profile, here])).toMatchObject({ exitCode: 0, stderr: '' });
    expect(await runToEnd([without, compiler, architecture, profile, there])).toMatchObject({
      exitCode: 0,
      stderr: '',
    });
    expect(readFileSync(there).equals(readFileSync(here))).toBe(true);
    expect(readFileSync(here).length).toBeGreaterThan(0);
  }
});
