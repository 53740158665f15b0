import { chmodSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { step } from './progress.mjs';
import { Problem } from './problem.mjs';
import { run } from './run.mjs';
import { refusalsOf } from './seccomp-refusals.mjs';
import { digestOf, isMadeFrom, markMadeFrom } from './stamp.mjs';

/** Architectures of the filters: by their names here, in libseccomp, and in linux/audit.h. */
const architectures = [
  { name: 'x64', libseccomp: 'x86_64', audit: 0xc000003e, hasX32: true },
  { name: 'arm64', libseccomp: 'aarch64', audit: 0xc00000b7, hasX32: false },
];
const flags = ['-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror'];

/**
 * Makes the system call filters of native/seccomp, as dist/seccomp/ARCHITECTURE.bpf, if their source changed: the
 * refusals that come first, then the profile as libseccomp compiles it. Each sandbox gets these bytes.
 */
export async function buildSeccompFilters(root) {
  const source = join(root, 'native/seccomp');
  const output = join(root, 'dist/seccomp');
  const programs = ['seccomp.mjs', 'seccomp-refusals.mjs'].map(name => join(root, 'scripts/setup', name));
  const digest = digestOf([source, ...programs], process.arch);
  if (isMadeFrom(output, digest)) return;
  await step('Compiling the filter of system calls', async () => {
    mkdirSync(join(root, 'dist'), { recursive: true });
    const made = mkdtempSync(`${output}-`);
    chmodSync(made, 0o755);
    try {
      const compiler = join(made, 'compile');
      await run(['gcc', ...flags, '-o', compiler, join(source, 'compile.c'), '-lseccomp']);
      const profile = JSON.parse(readFileSync(join(source, 'profile.json'), 'utf8'));
      const refusals = JSON.parse(readFileSync(join(source, 'refusals.json'), 'utf8'));
      for (const architecture of architectures) {
        const filter = await compileFor(architecture, { compiler, profile, refusals, made });
        writeFileSync(join(made, `${architecture.name}.bpf`), filter);
      }
      rmSync(compiler);
      rmSync(output, { recursive: true, force: true });
      renameSync(made, output);
      markMadeFrom(output, digest);
    } finally {
      rmSync(made, { recursive: true, force: true });
    }
  });
}

async function compileFor(architecture, { compiler, profile, refusals, made }) {
  const compiled = join(made, 'profile.bpf');
  const names = [...new Set([...refusals.newestCalls, ...refusals.syscalls.flatMap(rule => rule.names)])];
  const lines = [
    `default ${profile.defaultErrnoRet}`,
    ...profile.syscalls.flatMap(linesOf),
    ...names.map(name => `number ${name}`),
  ];
  const listed = join(made, 'profile');
  writeFileSync(listed, `${lines.join('\n')}\n`);
  const said = await run([compiler, architecture.libseccomp, listed, compiled]);
  const numbers = new Map([...said.matchAll(/^(\w+) (-?\d+)$/gm)].map(([, name, number]) => [name, Number(number)]));
  const newest = Math.max(...refusals.newestCalls.map(name => numbers.get(name) ?? -1));
  if (newest < 0) throw new Problem('libseccomp knows none of the newest system calls of the profile: it is too old.');
  const filter = Buffer.concat([
    refusalsOf(refusals.syscalls, { ...architecture, newest, numbers }),
    readFileSync(compiled),
  ]);
  for (const path of [listed, compiled]) rmSync(path);
  return filter;
}

const operators = { SCMP_CMP_EQ: 'eq', SCMP_CMP_NE: 'ne', SCMP_CMP_MASKED_EQ: 'masked' };

/** A rule in OCI form as lines for native/seccomp/compile.c. */
function linesOf({ names, action, errnoRet, args = [] }) {
  const what = { SCMP_ACT_ALLOW: 'allow', SCMP_ACT_ERRNO: `refuse ${errnoRet}` }[action];
  const comparisons = args.map(({ index, op, value, valueTwo }) => ` ${index} ${operators[op]} ${value} ${valueTwo}`);
  return names.map(name => `${what} ${name}${comparisons.join('')}`);
}
