import { idleFeature } from '../inside/feature.ts';
import { finding, findingsIn, sh, type Stage } from './stage.ts';

const timeoutMs = 60 * 60_000;

/** Speed compared with `crun run` on the same machine: an emulated machine's times say nothing by themselves. */
export const figures: Stage = {
  name: 'figures',
  async run(scene) {
    const { exitCode, output } = await sh(scene, '$bun test/hosts/inside/figures.ts 2>&1', timeoutMs);
    if (exitCode !== 0) return [finding('figures', false, output)];
    // On a machine that others use too, free memory changes by more than sandboxes take.
    return findingsIn(output).filter(({ feature }) => scene.machine.kind === 'guest' || feature !== idleFeature);
  },
};
