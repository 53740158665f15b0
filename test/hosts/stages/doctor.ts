import type { HostFinding } from '../../../src/protocol/doctor.ts';
import type { Finding } from '../inside/feature.ts';
import { finding, sh, type Stage } from './stage.ts';

const timeoutMs = 30 * 60_000;

/** What the doctor says before anything has run. Whether that is true shows when the platform starts. */
export const doctor: Stage = {
  name: 'doctor',
  async run(scene) {
    const { exitCode, output } = await sh(
      scene,
      'node scripts/prepare.mjs >&2 && bin/atoll doctor --json 2>/dev/null',
      timeoutMs,
    );
    return [doctorFinding(exitCode, output)];
  },
};

/** The result of `atoll doctor --json` as one finding: whether a sandbox ran, and what the machine lacks. */
export function doctorFinding(exitCode: number, output: string): Finding {
  const start = output.indexOf('[\n');
  const found = start < 0 ? [] : (JSON.parse(output.slice(start)) as HostFinding[]);
  const lacks = found
    .filter(({ status }) => status !== 'ok')
    .map(({ name, status, detail }) => `${name} ${status}: ${detail.slice(0, 120)}`);
  return finding(
    'doctor',
    exitCode === 0 && found.some(({ name, status }) => name === 'a sandbox' && status === 'ok'),
    found.length === 0 ? output : lacks.join('; '),
  );
}
