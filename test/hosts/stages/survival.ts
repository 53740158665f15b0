import { bothKinds, lookAfterwards } from './survivors.ts';
import { sh, type Stage } from './stage.ts';
import { startAgain } from './up.ts';

const timeoutMs = 30 * 60_000;

/** A crash of the platform, and on guests a reboot, with running and paused sandboxes. */
export const survival: Stage = {
  name: 'survival',
  async run(scene) {
    const survivors = await bothKinds(scene);
    await sh(
      scene,
      `kill -9 $(python3 -c 'import json; print(json.load(open("${scene.dataDir}/instance.json"))["pid"])')`,
      timeoutMs,
    );
    const found = [
      await startAgain(scene, 'kill -9: the platform starts again'),
      ...(await lookAfterwards(scene, 'kill -9', survivors)),
    ];
    if (scene.machine.kind === 'here') return found;
    await scene.machine.reboot();
    return [
      ...found,
      await startAgain(scene, 'reboot: the platform starts again'),
      ...(await lookAfterwards(scene, 'reboot', survivors)),
    ];
  },
};
