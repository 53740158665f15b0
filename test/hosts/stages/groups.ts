import type { Finding } from '../inside/feature.ts';
import { finding, findingsIn, sh, type Scene, type Stage } from './stage.ts';

const timeoutMs = 40 * 60_000;

/** Cgroups: what the kernel reports while clients use their sandboxes, and while systemd works beside the platform. */
export const groups: Stage = {
  name: 'groups',
  async run(scene) {
    const { exitCode, output } = await sh(scene, '$bun test/hosts/inside/groups.ts 2>&1', timeoutMs);
    const found = findingsIn(output);
    const seen = exitCode === 0 ? found : [...found, finding('groups', false, output)];
    return scene.machine.kind === 'here' ? seen : [...seen, await besideSystemd(scene)];
  },
};

/**
 * systemd manages the root of the cgroups and sets its controllers when units come and go. The limits of sandboxes must
 * survive that.
 */
async function besideSystemd(scene: Scene): Promise<Finding> {
  const limits =
    'for g in /sys/fs/cgroup/atoll0/s*; do echo $(basename $g) $(cat $g/memory.max $g/cpu.max $g/pids.max $g/../io.max 2>&1); done';
  const script = `${limits}; echo THEN; systemctl daemon-reload; systemd-run --wait --quiet -p CPUQuota=50% -p MemoryMax=64M -p TasksMax=10 sleep 1; systemctl daemon-reexec; sleep 2; ${limits}`;
  const { output } = await sh(scene, script, timeoutMs);
  const [before = '', after = ''] = output.split('THEN\n');
  return finding(
    'limits stay when systemd changes its units',
    before.trim() !== '' && before === after,
    before === after ? `${before.trim().split('\n').length} groups` : output,
  );
}
