import { closeSync, existsSync, openSync } from 'node:fs';
import { tryCommand } from './command.ts';
import { limited, missing, ok, type Probe, type Sight } from './probe.ts';

/** The first release whose dumps take TCP sockets on kernels of 6.16 and newer. */
const criuMin = [4, 2] as const;

/** The programs that isolate sandboxes, and those that keep their memory through a pause. */
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
  { name: 'CRIU', needed: false, look: lookAtCriu },
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

async function lookAtCriu(): Promise<Sight> {
  const remedy = `Install CRIU ${criuMin.join('.')} or newer. Without it a pause keeps the files of a sandbox, not its memory.`;
  if (!Bun.which('criu')) return missing('criu is not installed', remedy);
  const text = await tryCommand(['criu', '--version']);
  const [major = 0, minor = 0] = (/(\d+)\.(\d+)/.exec(text)?.slice(1) ?? []).map(Number);
  if (major < criuMin[0] || (major === criuMin[0] && minor < criuMin[1])) return limited(text.split('\n')[0] ?? '', remedy);
  const said = await tryCommand(['criu', 'check']);
  return /looks good/i.test(said) ? ok(`${major}.${minor}; criu check passes`) : limited(said.split('\n')[0] ?? '', remedy);
}

function lookAtKvm(): Sight {
  if (!existsSync('/dev/kvm')) return missing('no /dev/kvm; only a microVM driver would need it', 'Enable virtualization in the firmware, or nested virtualization in the hypervisor.');
  closeSync(openSync('/dev/kvm', 'r+'));
  return ok('/dev/kvm opens; no guest was started');
}
