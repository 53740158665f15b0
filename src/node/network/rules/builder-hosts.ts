import { isIPv6 } from 'node:net';
import { tableOf } from './table-name.ts';

/**
 * The packet rules' change that lets an installation's builders reach a port of addresses that are not public, for as
 * long as a job may run; told again, for as long again.
 */
export function builderHostsAdded(installation: number, addresses: readonly string[], port: number): string {
  return addresses
    .map(address => {
      const set = `builder_hosts${isIPv6(address) ? '_v6' : ''}`;
      const element = `element inet ${tableOf(installation)} ${set} { ${address} . ${port} }\n`;
      // Adding what is there would not begin its time anew.
      return `add ${element}delete ${element}add ${element}`;
    })
    .join('');
}
