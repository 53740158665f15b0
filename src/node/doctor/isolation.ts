import { closeSync, existsSync, openSync } from 'node:fs';
import type { BuildsAllowed } from '../../protocol/build.ts';
import type { DriverName } from '../../protocol/driver.ts';
import { crunProgram } from '../drivers/crun/driver.ts';
import { describeDriver } from '../drivers/drivers.ts';
import { findRunsc } from '../drivers/gvisor/find-runsc.ts';
import { limitations } from '../drivers/gvisor/limitations.ts';
import { tryCommand } from '../../base/process/command.ts';
import { limited, missing, ok, type Probe, type ProbeResult } from './probe.ts';

/** The program that starts sandboxes. */
export const crunProbe: Probe = {
  name: crunProgram,
  needed: true,
  remedy: `Install ${crunProgram}.`,
  async look() {
    const version = await tryCommand([crunProgram, '--version']);
    return ok(version.split('\n')[0] ?? '');
  },
};

/** Other ways to isolate sandboxes. */
export const otherIsolationProbes = (runscDir: string): Probe[] => [
  {
    name: 'gVisor',
    needed: false,
    look: () => lookAtGvisor(runscDir),
    remedy: 'ATOLL_DRIVER=gvisor is of no use here; docs/drivers.md says what it needs.',
  },
  { name: 'KVM', needed: false, look: lookAtKvm },
];

/** Says who may run commands in builds, and on what. Nothing is tried. */
export const buildsProbe = ({ builds, driver }: { builds: BuildsAllowed; driver: DriverName }): Probe => ({
  name: 'builds',
  needed: false,
  look() {
    const { title, kernel } = describeDriver(driver);
    const steps =
      kernel === 'own' ? `their steps run on ${title}` : `their steps share the host’s kernel through ${title}`;
    if (builds === 'off') return ok('no team builds templates (ATOLL_BUILDS=off)');
    return ok(
      builds === 'admin'
        ? `the operator alone builds templates; ${steps} (ATOLL_BUILDS=admin)`
        : `every team builds templates; ${steps} (ATOLL_BUILDS=on)`,
    );
  },
});

/** Starts a program in gVisor, and says what its sandboxes can't do. */
async function lookAtGvisor(runscDir: string): Promise<ProbeResult> {
  const runsc = findRunsc(runscDir);
  if (!runsc.found)
    return missing(
      `no gVisor: ${runsc.reason}; sandboxes share the host’s kernel through crun`,
      'It is needed only where stronger isolation is wanted; docs/drivers.md says where it comes from.',
    );
  const said = await tryCommand([
    runsc.program,
    '--rootless',
    '--network=none',
    '--ignore-cgroups',
    'do',
    'echo',
    'it runs',
  ]);
  const version = `runsc ${runsc.version} (${runsc.source})`;
  if (!said.includes('it runs'))
    return missing(`${version} does not run here: ${said.split('\n').at(-1)}`, 'docs/drivers.md says what it needs.');
  return limited(
    `${version} runs; its sandboxes have ${Object.values(limitations).join('; ')}`,
    'Leave templates that need one of these on crun: ATOLL_DRIVER and ATOLL_TEMPLATE_DRIVERS, see docs/drivers.md.',
  );
}

function lookAtKvm(): ProbeResult {
  if (!existsSync('/dev/kvm'))
    return missing(
      'no /dev/kvm; only a microVM driver would need it',
      'Enable virtualization in the firmware, or nested virtualization in the hypervisor.',
    );
  closeSync(openSync('/dev/kvm', 'r+'));
  return ok('/dev/kvm opens; no guest was started');
}
