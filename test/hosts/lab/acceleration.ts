import { accessSync, constants, readFileSync } from 'node:fs';
import type { Architecture } from './host-list.ts';

/** The facts of this machine that decide how a guest runs. */
type Facts = { architecture: string; cpuinfo: string; opensKvm: boolean };

const emulated: Record<Architecture, string> = {
  x64: 'max',
  // Pointer authentication costs an emulated processor a lot, and plays no part in what is examined.
  arm64: 'neoverse-n1',
};

/**
 * QEMU's arguments for a guest's processor: this machine's, if possible (KVM), otherwise an emulated one. A machine
 * whose hypervisor offers only software virtualization (PVM) also opens /dev/kvm, but boots no stock kernel: its
 * processor has none of the flags.
 */
export function processorArguments(architecture: Architecture, facts: Facts = factsOfHere()): string[] {
  const byKvm = facts.architecture === architecture && facts.opensKvm && /\b(vmx|svm)\b/.test(facts.cpuinfo);
  if (byKvm) return ['-accel', 'kvm', '-cpu', 'host'];
  // Its clock counts instructions, a nanosecond or two for each, and not the time of emulating them: programs with
  // timeouts see a machine of ordinary speed, however busy its host is.
  return ['-accel', 'tcg', '-icount', 'shift=1', '-rtc', 'clock=vm', '-cpu', emulated[architecture]];
}

function factsOfHere(): Facts {
  let opensKvm = true;
  try {
    accessSync('/dev/kvm', constants.R_OK | constants.W_OK);
  } catch {
    opensKvm = false;
  }
  return { architecture: process.arch, cpuinfo: readFileSync('/proc/cpuinfo', 'utf8'), opensKvm };
}
