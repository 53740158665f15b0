import { finding, findingsIn, sh, type Scene, type Stage } from './stage.ts';
import { startPlatform } from './up.ts';

const timeoutMs = 30 * 60_000;

/** A crash of the platform, and on guests a reboot, while sandboxes run and are paused. */
export const survival: Stage = {
  name: 'survival',
  async run(scene) {
    const made = await sh(scene, '$bun test/hosts/inside/survivors.ts begin 2>&1', timeoutMs);
    const ids = made.output.split('\n').find(line => line.startsWith('{"running":'));
    if (ids === undefined) return [finding('sandboxes to survive', false, made.output)];
    const { running, paused } = JSON.parse(ids) as { running: string; paused: string };
    const after = async (what: string) => findingsIn((await sh(scene, `$bun test/hosts/inside/survivors.ts ${what} ${running} ${paused} 2>&1`, timeoutMs)).output);
    await sh(scene, `kill -9 $(python3 -c 'import json; print(json.load(open("${scene.dataDir}/instance.json"))["pid"])')`, timeoutMs);
    const found = [...(await again(scene, 'kill -9: the platform starts again')), ...(await after('crash'))];
    if (scene.machine.kind === 'here') return found;
    await scene.machine.reboot();
    return [...found, ...(await again(scene, 'reboot: the platform starts again')), ...(await after('reboot'))];
  },
};

async function again(scene: Scene, feature: string) {
  const { up, output } = await startPlatform(scene, 'bin/atoll up');
  return [finding(feature, up, up ? '' : output)];
}
