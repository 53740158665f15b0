import type { Finding } from '../inside/feature.ts';
import type { Kept } from '../inside/survivors.ts';
import { finding, findingsIn, sh, type Scene } from './stage.ts';

const timeoutMs = 30 * 60_000;
const program = '$bun test/hosts/inside/survivors.ts';

/** Running and paused sandboxes, for the next event that the platform goes through. */
export async function bothKinds(scene: Scene): Promise<Kept> {
  const { output } = await sh(scene, `${program} begin 2>&1`, timeoutMs);
  const made = output.split('\n').find(line => line.startsWith('{"running":'));
  if (made === undefined) throw new Error(`no sandboxes to survive: ${output.slice(-600)}`);
  return JSON.parse(made) as Kept;
}

/** The state of both afterwards. */
export async function lookAfterwards(scene: Scene, what: string, { running, paused }: Kept): Promise<Finding[]> {
  const { exitCode, output } = await sh(scene, `${program} '${what}' ${running} ${paused} 2>&1`, timeoutMs);
  const found = findingsIn(output);
  return exitCode === 0 ? found : [...found, finding(`${what}: the sandboxes`, false, output)];
}
