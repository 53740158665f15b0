import { readFileSync, writeFileSync } from 'node:fs';
import { AtollError } from '../../base/error.ts';
import { innerAddress, slotNetwork, slotOf, slotsMax } from '../layout.ts';

/**
 * Destinations that no sandbox reaches, whatever its own rules say: the host's neighbours, link-local services such as
 * cloud metadata, multicast, and the addresses that stand for sandboxes.
 */
export const protectedNetworks = [
  '0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24', '192.168.0.0/16',
  '198.18.0.0/15', '224.0.0.0/3',
];

/**
 * The packet rules of one installation, one table, replaced as a whole.
 *
 * Inside, all sandboxes have one address. `prerouting` writes the slot's address over it as a packet leaves its link, and
 * `postrouting` the other way as one arrives, both without state: in between, each sandbox has an address of its own.
 * That also settles spoofing: a packet with any other source is dropped. The price: an ICMP error quotes the address
 * between, so the sandbox ignores it; connections are refused by reset instead, and segment sizes are set on the way.
 */
export function hostTable(installation: number, offline: string[]): string {
  const links = `"at${installation}-*"`;
  const addresses = Array.from({ length: slotsMax }, (_, number) => slotOf(installation, number));
  const table = `atoll${installation}`;
  return `
table inet ${table}
delete table inet ${table}
table inet ${table} {
  map slot_address {
    type ifname : ipv4_addr
    elements = { ${addresses.map(slot => `"${slot.interfaceName}" : ${slot.address}`).join(', ')} }
  }
  set offline {
    type ifname
    ${offline.length ? `elements = { ${offline.map(name => `"${name}"`).join(', ')} }` : ''}
  }
  set protected {
    type ipv4_addr
    flags interval
    elements = { ${protectedNetworks.join(', ')} }
  }
  chain prerouting {
    type filter hook prerouting priority raw; policy accept;
    iifname ${links} jump from_sandbox
  }
  chain from_sandbox {
    meta nfproto ipv6 drop
    ip saddr != ${innerAddress} drop
    ip saddr set iifname map @slot_address
  }
  chain forward {
    type filter hook forward priority filter; policy accept;
    iifname ${links} jump outgoing
    oifname ${links} jump incoming
  }
  chain outgoing {
    meta nfproto ipv6 drop
    oifname "at*" drop
    iifname @offline jump refuse
    ip daddr @protected jump refuse
    tcp flags syn tcp option maxseg size set rt mtu
    accept
  }
  chain refuse {
    meta l4proto tcp reject with tcp reset
    drop
  }
  chain incoming {
    ct state established,related accept
    drop
  }
  chain input {
    type filter hook input priority filter; policy accept;
    iifname ${links} drop
  }
  chain output {
    type filter hook output priority filter; policy accept;
    oifname ${links} ct state new drop
  }
  chain source_nat {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${slotNetwork(installation)} masquerade
  }
  chain postrouting {
    type filter hook postrouting priority 300; policy accept;
    oifname ${links} ip daddr ${slotNetwork(installation)} ip daddr set ${innerAddress}
  }
}
`;
}

export async function installHostTable(installation: number, offline: string[]): Promise<void> {
  await nft(hostTable(installation, offline));
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1');
}

export async function removeHostTable(installation: number): Promise<void> {
  await nft(`table inet atoll${installation}\ndelete table inet atoll${installation}\n`);
}

/** Cuts a sandbox off from everything outside, or lets it out again. */
export async function setOffline(installation: number, interfaceName: string, offline: boolean): Promise<void> {
  await nft(`${offline ? 'add' : 'delete'} element inet atoll${installation} offline { "${interfaceName}" }\n`);
}

/** Applies a script of rules as one transaction: all of it or nothing. */
async function nft(script: string): Promise<void> {
  const process = Bun.spawn(['nft', '-f', '-'], { stdin: Buffer.from(script), stdout: 'ignore', stderr: 'pipe' });
  const [status, text] = await Promise.all([process.exited, new Response(process.stderr).text()]);
  if (status !== 0) throw new AtollError('internal', `nft refused the rules: ${text.trim().split('\n')[0]}`);
}

/** The largest packet that the way out takes; links into sandboxes use the same. */
export function outgoingMtu(): number {
  const line = readFileSync('/proc/net/route', 'utf8').split('\n').find(row => row.split('\t')[1] === '00000000');
  try {
    return Number(readFileSync(`/sys/class/net/${line?.split('\t')[0]}/mtu`, 'utf8'));
  } catch {
    return 1500; // no way out
  }
}
