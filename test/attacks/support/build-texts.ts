import { expect } from 'bun:test';
import { readyOf, refusalOf, type BuildRange } from './build-attacks.ts';
import type { Attack } from './wall.ts';

/**
 * Processor time of this process, which is the node here: a text's cost must fall on the builder, or be small. With
 * quadratic cost, each text would take from several seconds to minutes. Processor time counts, not the clock's.
 */
const ownSecondsMax = 3;

async function countingOwnWork(attempt: () => Promise<void>): Promise<void> {
  const before = process.cpuUsage();
  await attempt();
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1e6).toBeLessThan(ownSecondsMax);
}

/** Dockerfiles, in the form in which the API has them read. */
const dockerfiles: [name: string, text: string, honest: string][] = [
  ['variables that are not closed', `ENV X=${'${A:-'.repeat(10_000)}`, 'ENV X=${A:-a}'],
  [
    'variables that are not closed in a here-document',
    `COPY <<A /x\n${'${A:-'.repeat(20_000)}\nA`,
    'COPY <<A /x\n${A:-a}\nA',
  ],
  ['variables that double', `ENV A=${'a'.repeat(1000)}\n${'ENV A=$A$A\n'.repeat(40)}`, 'ENV A=$A$A'],
  ['arguments that double', `ARG A=${'a'.repeat(1000)}\n${'ARG A=$A$A\n'.repeat(40)}`, 'ARG A=a$A'],
  [
    'ten thousand variables',
    Array.from(
      { length: 990 },
      (_, line) => `ENV ${Array.from({ length: 11 }, (__, each) => `V${line}_${each}=x`).join(' ')}`,
    ).join('\n'),
    'ENV A=1 B=2',
  ],
  ['sixteen thousand flags', `RUN ${'--network=none '.repeat(4_300)}--none true`, 'RUN --network=none true'],
  ['a word of a megabyte', `ENV A=${'a'.repeat(900_000)}`, `ENV A=${'a'.repeat(9_000)}`],
  ['fifty thousand lines of one instruction', `RUN true ${'\\\n '.repeat(50_000)}`, 'RUN true \\\n &&\\\n true'],
  ['a million instructions', 'USER a\n'.repeat(140_000), 'USER root'],
  ['brackets without end', `RUN ["${'['.repeat(60_000)}`, 'RUN ["echo"]'],
  [
    'names of the language itself',
    'FROM constructor\nCOPY --from=__proto__ ${constructor} $__proto__ /x/',
    'ARG constructor=1\nENV A=$constructor',
  ],
  ['a mount over the root', 'RUN --mount=type=cache,target=/ true', 'RUN --mount=type=cache,target=/c true'],
  ['a mount over the agent', 'RUN --mount=type=tmpfs,target=/.agent true', 'RUN --mount=type=tmpfs,target=/t true'],
  [
    'a mount that leads upwards',
    'RUN --mount=type=cache,target=/a/../../proc true',
    'RUN --mount=type=cache,target=/a/b true',
  ],
  [
    'a mount of another stage that leads upwards',
    'RUN --mount=type=bind,from=a,source=../../..,target=/h true',
    'RUN --mount=type=tmpfs,target=/h true',
  ],
  [
    'a secret of the host',
    'RUN --mount=type=secret,id=../../etc/shadow,required=true cat /run/secrets/*',
    'RUN --mount=type=secret,id=s true',
  ],
];

/** Output of a command in a build that must nevertheless succeed. */
const outputs: [name: string, command: string][] = [
  [
    'returns in front of the end of a line',
    `i=0; while [ $i -lt 5 ]; do head -c 65000 /dev/zero | tr '\\000' '\\015'; echo b; i=$((i+1)); done`,
  ],
  [
    'white space in front of the end of a line',
    `i=0; while [ $i -lt 5 ]; do head -c 65000 /dev/zero | tr '\\000' ' '; echo b; i=$((i+1)); done`,
  ],
  ['a line of ten megabytes', `head -c 10000000 /dev/zero | tr '\\000' 'x'; echo`],
  [
    'a hundred thousand lines',
    'i=0; while [ $i -lt 500 ]; do echo; i=$((i+1)); done; head -c 100000 /dev/zero | tr "\\000" "\\012"',
  ],
  ['bytes of no text', 'head -c 1000000 /dev/urandom'],
  [
    'commands for terminals',
    `printf '\\033]0;x\\007\\033[2J%.0s' $(head -c 20000 /dev/zero | tr '\\000' 'x' | sed 's/x/x /g')`,
  ],
];

export function textAttacks(range: () => BuildRange): Attack[] {
  return [
    ...dockerfiles.map(([name, text, honest]): Attack => [
      `a Dockerfile with ${name}`,
      () =>
        countingOwnWork(async () => {
          const head = text.startsWith('FROM') ? '' : 'FROM small AS a\nFROM small\n';
          refusalOf(await range().dockerfile(`${head}${text}`));
          readyOf(await range().dockerfile(`FROM small AS a\nFROM small\n${honest}`));
        }),
    ]),
    ...outputs.map(([name, command]): Attack => [
      `output of a step with ${name}`,
      () =>
        countingOwnWork(async () => {
          const outcome = await range().dockerfile(`FROM small\nRUN ${command}`);
          readyOf(outcome);
          expect(outcome.log.length).toBeLessThan(20 << 20);
        }),
    ]),
  ];
}
