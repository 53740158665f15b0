import { finding, sh, type Stage } from './stage.ts';

const timeoutMs = 20 * 60_000;

/**
 * systemd holds the root of the control groups and sets its controllers when units come and go. The limits of sandboxes must
 * stay through that.
 */
export const groups: Stage = {
  name: 'groups',
  async run(scene) {
    if (scene.machine.kind === 'here') return [];
    const limits = 'for g in /sys/fs/cgroup/atoll0/s*; do echo $(basename $g) $(cat $g/memory.max $g/cpu.max $g/pids.max 2>&1); done';
    const script = `${limits}; echo THEN; systemctl daemon-reload; systemd-run --wait --quiet -p CPUQuota=50% -p MemoryMax=64M -p TasksMax=10 sleep 1; systemctl daemon-reexec; sleep 2; ${limits}`;
    const { output } = await sh(scene, script, timeoutMs);
    const [before = '', after = ''] = output.split('THEN\n');
    return [finding('limits stay when systemd changes its units', before.trim() !== '' && before === after, before === after ? `${before.trim().split('\n').length} groups` : output)];
  },
};
