import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'bun:test';
import { createBuilder } from '../../../src/node/builder/builder.ts';
import { makeLayer } from '../../../src/node/layers/make.ts';
import { userIdOf } from '../../../src/base/process/part-users.ts';
import type { Space } from '../../../src/node/space/space.ts';
import type { BuildRange } from './build-attacks.ts';
import type { Attack } from './wall.ts';

const helperBinary = join(import.meta.dir, '../../../dist/helper');
/** No installation of the tests has this number. */
const installation = 15;

/** Runs a shell script in place of a builder, like one that was taken over from inside. */
function inBuilder(script: string, shows: Record<string, string> = {}): { output: string; status: number } {
  const scratch = mkdtempSync(join(tmpdir(), 'atoll-confined-'));
  try {
    // It calls itself by its folder's name: busybox is a shell then.
    const runtime = join(scratch, 'sh');
    mkdirSync(runtime);
    copyFileSync('/usr/bin/busybox', join(runtime, 'builder'));
    const shown = Object.entries(shows).flatMap(([name, path]) => ['-s', name, path]);
    const child = Bun.spawnSync(
      [
        helperBinary,
        'confine',
        String(process.pid),
        String(userIdOf('builder', installation)),
        '10',
        ...shown,
        '--',
        runtime,
        '-c',
        script,
      ],
      { env: { SECRET: 'of the platform' }, stdin: 'ignore' },
    );
    return { output: child.stdout.toString() + child.stderr.toString(), status: child.exitCode };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** What a compromised builder tries, and what it sees instead. */
const attempts: [name: string, script: string, sees: RegExp, not?: RegExp][] = [
  ['to read the host’s files', 'ls -a /; cat /etc/passwd /etc/shadow', /can't open '\/etc\/shadow'/, /root:|etc$/m],
  ['to see the host’s processes', 'ls /proc', /^1$/m, /^\d{3,}$/m],
  ['to read the host by its own root', 'ls -a /proc/1/root/ /proc/self/cwd/', /\.builder/, /etc/],
  ['to find the platform’s environment', 'cat /proc/1/environ; export', /^/, /SECRET/],
  ['to be root', 'grep Uid /proc/self/status', /Uid:\s+[1-9]\d+/],
  ['to have capabilities', 'grep Cap /proc/self/status', /CapEff:\s+0000000000000000\nCapBnd:\s+0000000000000000/],
  ['to get new privileges', 'grep -E "NoNewPrivs|Seccomp:" /proc/self/status', /NoNewPrivs:\s+1\nSeccomp:\s+2/],
  ['to mount', 'mount -t tmpfs none /proc', /denied|not permitted|must be superuser/i],
  ['to unmount', 'umount /proc', /denied|not permitted|must be superuser/i],
  ['to make namespaces', 'unshare -U true; unshare -m true', /not permitted/],
  ['to enter another root', 'chroot /proc /x', /not permitted/],
  ['to make devices', 'mknod /d b 8 0', /Read-only|not permitted/],
  ['to write beside what it may', 'echo x > /x; mkdir /.builder/x', /Read-only[^]*Read-only/],
  [
    'to connect to the machine',
    'nc -w 1 127.0.0.1 22 </dev/null; ping -c 1 127.0.0.1',
    /permission denied|not permitted/i,
  ],
  ['to keep files open of others', 'ls /proc/self/fd | tr "\\n" " "', /^0 1 2 3 4 (5 )?/, /[7-9]/],
  ['to leave a core', 'ulimit -c', /^0$/m],
  ['to trace', 'kill -9 0; kill -9 -1; echo alive', /^/, /of the platform/],
];

/** The same for one that is shown something: it may read that, whoever owns it, and no more. */
const withShown: [name: string, script: string, sees: RegExp, not?: RegExp][] = [
  ['what belongs to root, to read it', 'cat /view/private', /content of private/],
  [
    'what belongs to root, to change it',
    'echo x > /view/private; chmod 777 /view/private; rm /view/private; cat /view/private',
    /content of private[^]*Read-only file system\n[^]*Read-only[^]*Read-only/,
  ],
  ['a link to the host', 'cat /view/link', /can't open/, /root:/],
  ['a program with the rights of root', '/view/program', /denied/],
  [
    'capabilities beyond reading',
    'grep Cap /proc/self/status',
    /CapEff:\s+0000000000000004\nCapBnd:\s+0000000000000004/,
  ],
  ['another user of the host', 'grep Uid /proc/self/status', /Uid:\s+65536/],
  ['a way up', 'cat /view/../../../etc/shadow', /can't open/],
];

/** Programs that act as a builder gone wrong, by the source they are compiled from. */
const broken: [name: string, source: string, refusal: RegExp][] = [
  ['takes all memory', 'for (;;) memset(malloc(1 << 20), 1, 1 << 20);', /took more memory|has ended its reader/],
  ['crashes', 'abort();', /has ended its reader/],
  ['says nothing', '', /without an answer: status 0/],
  ['says what is no JSON', 'puts("x");', /not JSON/],
  ['answers what was not asked', 'puts("{\\"ok\\":{\\"bytes\\":1,\\"inodes\\":1}}");', /\.ok\.files must be a list/],
  [
    'answers a text where a path should be, without end',
    'printf("{\\"ok\\":{\\"files\\":[],\\"user\\":{\\"known\\":true,\\"home\\":\\"%05000d\\"}}}\\n", 1);',
    /home must be a text of up to 4096 characters/,
  ],
  ['answers with members of its own', 'puts("{\\"oh\\":1}");', /must be/],
  [
    'never stops talking',
    'for (;;) puts("{\\"resolve\\":{\\"host\\":\\"x\\",\\"isSecure\\":true}}                                        ");',
    // Two bounds stand in its way; scheduling decides which it meets first: answered questions, or unread bytes.
    /asks for more|longer than/,
  ],
  [
    'answers without end',
    'for (;;) puts("{\\"ok\\":1}                                                                                                    ");',
    // Depends on how much arrives at once: either its first line is read and is no answer, or it is too long before
    // that.
    /longer than|what is no answer/,
  ],
  [
    'answers an error of its own making',
    'puts("{\\"error\\":{\\"code\\":\\"constructor\\",\\"message\\":\\"x\\"}}");',
    /^x$/,
  ],
];

export function rightsAttacks(range: () => BuildRange): Attack[] {
  const honest = async () => {
    const { builds, small } = range();
    expect(await builds.test.node.builds.readDockerfile('FROM x')).toHaveLength(1);
    expect(small.layers.length).toBeGreaterThan(0);
  };
  return [
    ...attempts.map(([name, script, sees, not]): Attack => [
      `a builder that was taken over tries ${name}`,
      async () => {
        const { output } = inBuilder(script);
        expect(output).toMatch(sees);
        if (not) expect(output).not.toMatch(not);
        await honest();
      },
    ]),
    ...withShown.map(([name, script, sees, not]): Attack => [
      `a builder that was taken over tries ${name}`,
      async () => {
        const scratch = mkdtempSync(join(tmpdir(), 'atoll-shown-'));
        try {
          writeFileSync(join(scratch, 'private'), 'content of private', { mode: 0o600 });
          Bun.spawnSync(['ln', '-s', '/etc/passwd', join(scratch, 'link')]);
          Bun.spawnSync(['install', '-m', '4755', '/usr/bin/busybox', join(scratch, 'program')]);
          const { output } = inBuilder(script, { view: scratch });
          expect(output).toMatch(sees);
          if (not) expect(output).not.toMatch(not);
        } finally {
          rmSync(scratch, { recursive: true, force: true });
        }
        await honest();
      },
    ]),
    ...broken.map(([name, source, refusal]): Attack => [
      `a builder that ${name} ends its job and nothing else`,
      async () => {
        await withProgram(source, async builder => {
          await expect(builder.run({ job: { kind: 'look', files: [], user: 'root' } })).rejects.toThrow(refusal);
        });
        await honest();
      },
    ]),
    [
      'a builder that was taken over can’t call a layer by another’s digest',
      async () => {
        const { builds } = range();
        const [known = ''] = builds.base.layers;
        const { layers } = builds.test.node;
        const before = layers.bytes(known);
        await withProgram(
          `write(4, "evil", 4); puts("{\\"ok\\":{\\"digest\\":\\"${known}\\",\\"bytes\\":4,\\"inodes\\":1}}");`,
          async builder => {
            const made = await makeLayer(
              { builder, layers, space: endlessRoom },
              { job: { kind: 'import', limits: { bytesMax: 1000, inodesMax: 10 } } },
            );
            expect(made).not.toBe(known);
            expect(made).toMatch(/^sha256:[0-9a-f]{64}$/);
          },
        );
        expect(layers.bytes(known)).toBe(before);
        await honest();
      },
    ],
  ];
}

/** The disk is not at stake here. */
const endlessRoom: Space = {
  freeBytes: () => Infinity,
  require: () => {},
  reserve: () => ({ wrote: () => {}, [Symbol.dispose]: () => {} }),
  signal: () => new AbortController().signal,
  facts: () => ({ freeBytes: Infinity, owedBytes: 0, reserveBytes: 0, held: false, failedDisks: 0 }),
  stop: async () => {},
};

async function withProgram(
  source: string,
  use: (builder: ReturnType<typeof createBuilder>) => Promise<void>,
): Promise<void> {
  const builderDir = mkdtempSync(join(tmpdir(), 'atoll-broken-'));
  const text = `#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\nint main(void) { ${source} return 0; }`;
  // As set-up makes its folder: anybody may read it.
  chmodSync(builderDir, 0o755);
  const compiled = Bun.spawnSync(['gcc', '-static', '-w', '-x', 'c', '-o', join(builderDir, 'builder'), '-'], {
    stdin: Buffer.from(text),
  });
  if (compiled.exitCode !== 0) throw new Error(compiled.stderr.toString());
  const builder = createBuilder({ helper: { mountsPid: process.pid }, helperBinary, builderDir, installation });
  try {
    await use(builder);
  } finally {
    await builder.stop();
    rmSync(builderDir, { recursive: true, force: true });
  }
}
