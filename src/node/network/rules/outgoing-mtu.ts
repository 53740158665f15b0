import { readFileSync } from 'node:fs';
import { ifThere } from '../../../base/if-there.ts';

/** MTU of Ethernet, octets. */
const usualMtu = 1500;

/** The largest packet that the way out takes; links into sandboxes use the same. */
export function outgoingMtu(): number {
  const line = readFileSync('/proc/net/route', 'utf8')
    .split('\n')
    .find(row => row.split('\t')[1] === '00000000');
  const name = line?.split('\t')[0];
  if (name === undefined) return usualMtu; // no way out
  return Number(ifThere(() => readFileSync(`/sys/class/net/${name}/mtu`, 'utf8'), usualMtu));
}
