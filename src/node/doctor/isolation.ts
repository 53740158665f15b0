import { closeSync, existsSync, openSync } from 'node:fs';
import { tryCommand } from './command.ts';
import { limited, missing, ok, type Probe, type Sight } from './probe.ts';

/** The programs that isolate sandboxes. */
export const isolationProbes: Probe[] = [
  {
    name: 'crun',
    needed: true,
    remedy: 'Install crun.',
    async look() {
      const version = await tryCommand(['crun', '--version']);
      return ok(version.split('\n')[0] ?? '');
    },
  },
  {
    name: 'gVisor',
    needed: false,
    async look() {
      if (!Bun.which('runsc')) return missing('runsc is not installed; sandboxes share the host’s kernel through crun', 'Install runsc where stronger isolation is wanted.');
      return ok((await tryCommand(['runsc', '--version'])).split('\n')[0] ?? '');
    },
  },
  { name: 'KVM', needed: false, look: lookAtKvm },
];

function lookAtKvm(): Sight {
  if (!existsSync('/dev/kvm')) return missing('no /dev/kvm; only a microVM driver would need it', 'Enable virtualization in the firmware, or nested virtualization in the hypervisor.');
  closeSync(openSync('/dev/kvm', 'r+'));
  return ok('/dev/kvm opens; no guest was started');
}
