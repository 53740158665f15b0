import { finding, sh, type Stage } from './stage.ts';

const suiteTimeoutMs = 90 * 60_000;
/** Limit of one test, by the machine's own clock. */
const testTimeoutMs = 2 * 60_000;

/**
 * Suites of the repository that show what a kernel may get wrong: isolation, the complete tables of attacks, what is
 * left behind.
 */
export const suites = [
  'test/conformance/isolation.test.ts',
  'test/attacks/kernel.test.ts',
  'test/attacks/files.test.ts',
  'test/attacks/shares-kernel.test.ts',
  'test/attacks/shares-network.test.ts',
  'test/attacks/network.test.ts',
  'test/node/leaks.test.ts',
];

export const repositorySuites: Stage = {
  name: 'suites',
  async run(scene) {
    const found = [];
    for (const suite of suites.filter(name => scene.only.length === 0 || scene.only.includes(name))) {
      const { exitCode, output } = await sh(
        scene,
        // Since Debian 13, /tmp is in memory and lacks the space that nodes reserve.
        `ATTACKS=all TMPDIR=/var/tmp $bun test --timeout=${testTimeoutMs} ./${suite} 2>&1`,
        suiteTimeoutMs,
      );
      const count = (word: string) => Number(new RegExp(`^ *(\\d+) ${word}$`, 'm').exec(output)?.[1] ?? 0);
      const failed = output
        .split('\n')
        .filter(line => line.startsWith('(fail)'))
        .join('; ');
      found.push(
        finding(
          suite,
          exitCode === 0 && count('pass') > 0,
          `${count('pass')} pass, ${count('fail')} fail${count('skip') > 0 ? `, ${count('skip')} skipped` : ''}${failed === '' ? '' : `: ${failed}`}`,
        ),
      );
    }
    return found;
  },
};
