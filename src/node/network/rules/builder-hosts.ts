import { isIPv6 } from 'node:net';
import { tableOf } from './table-name.ts';

/**
 * The change to the packet rules that lets an installation's builders reach a port of addresses that are not public,
 * for as long as a job may run; repeating it starts that time anew.
 */
export function builderHostsAdded(installation: number, addresses: readonly string[], port: number): string {
  return addresses
    .map(address => {
      const set = `builder_hosts${isIPv6(address) ? '_v6' : ''}`;
      const element = `element inet ${tableOf(installation)} ${set} { ${address} . ${port} }\n`;
      // Adding an element that is already there would not restart its time.
      return `add ${element}delete ${element}add ${element}`;
    })
    .join('');
}
