import { readFileSync } from 'node:fs';
import { ifThere } from '../../../base/if-there.ts';
import type { Slot } from '../../layout.ts';

/** Octets that the host's end of a link has received from, or sent into, the sandbox; NaN if the link is gone. */
export function linkBytes(slot: Slot, direction: 'rx' | 'tx'): number {
  const path = `/sys/class/net/${slot.interfaceName}/statistics/${direction}_bytes`;
  return Number(ifThere(() => readFileSync(path, 'utf8'), Number.NaN));
}
