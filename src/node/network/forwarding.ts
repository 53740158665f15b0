import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ifThere } from '../../base/if-there.ts';
import { protectedRange } from '../../protocol/network/network.ts';
import { waysOutV6 } from './ipv6.ts';
import { tableOf } from './rules/table-name.ts';
import { nft } from './rules/nft.ts';

/** How often to check whether the way out has changed. */
const lookEveryMs = 10_000;

/** How the host's kernel says which packets it forwards. */
type Family = {
  /** The beginning of this family's entries in the file. */
  prefix: string;
  settings: string;
  /** The setting that is 1 if all interfaces forward. */
  all: string;
  /** The same for one interface, in its directory. */
  one: string;
  /** The set of the host table with the interfaces that forward only for sandboxes. */
  set: keyof Guards;
  waysOut(): string[];
};

/** Interfaces that forward only for sandboxes, by the set of the host table that holds them. */
export type Guards = { ways_out: string[]; ways_out_v6: string[] };

const ipv4: Family = {
  prefix: '',
  settings: '/proc/sys/net/ipv4',
  all: 'ip_forward',
  one: 'forwarding',
  set: 'ways_out',
  waysOut: () => waysOut(readFileSync('/proc/net/route', 'utf8')),
};

/**
 * With `forwarding`, a single interface would act as a router to its neighbours, and still forward nothing.
 * `force_forwarding` exists since Linux 6.17.
 */
const ipv6: Family = {
  prefix: 'ipv6 ',
  settings: '/proc/sys/net/ipv6',
  all: 'conf/all/forwarding',
  one: 'force_forwarding',
  set: 'ways_out_v6',
  waysOut: waysOutV6,
};

/**
 * Whether the host forwards packets, by interface. A sandbox's link forwards from the moment it is made
 * (native/link.c); the answers come in by the host's own way out, which must forward too, and no other interface. If
 * the host forwards for all anyway, nothing is changed.
 */
export type Forwarding = {
  /** The content of the sets in the host table that is put in place next. */
  guards(): Guards;
  start(): Promise<void>;
  stop(): void;
  /** Puts back what was changed, unless another installation needs it. */
  undo(): void;
};

/** `file` remembers over restarts what was changed, for both families. `ipv6`: whether sandboxes have it. */
export function createForwarding({
  installation,
  ipv6: hasIpv6,
  file,
  onError,
}: {
  installation: number;
  ipv6: boolean;
  file: string;
  onError(error: unknown): void;
}): Forwarding {
  // IPv4 interfaces by their names, as earlier releases wrote them; IPv6 ones with their family before the name.
  const opened = new Set<string>(existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as string[]) : []);
  const guarded = new Map<Family, string>();
  let timer: ReturnType<typeof setInterval> | undefined;

  const waysOutOf = (family: Family) =>
    forwardsForAll(family) || (family === ipv6 && !hasIpv6) ? [] : family.waysOut();
  /** An interface that was opened still forwards when the way out has changed. */
  const toGuard = (family: Family) => {
    const before = [...opened].filter(entry => familyOf(entry) === family).map(nameOf);
    return forwardsForAll(family) ? [] : [...new Set([...before, ...waysOutOf(family)])].sort();
  };
  const guard = async (family: Family) => {
    const names = toGuard(family);
    if ((guarded.get(family) ?? '') === names.join()) return;
    const set = `inet ${tableOf(installation)} ${family.set}`;
    const elements = names.length > 0 ? `add element ${set} { ${names.map(name => `"${name}"`).join(', ')} }\n` : '';
    await nft(`flush set ${set}\n${elements}`);
    guarded.set(family, names.join());
  };
  const lookAt = async (family: Family) => {
    await guard(family);
    for (const name of waysOutOf(family)) {
      // A way out that has appeared since gets its turn with the next look.
      if (!guarded.get(family)?.split(',').includes(name)) continue;
      if (readSetting(family, `conf/${name}/${family.one}`) !== '0') continue;
      opened.add(`${family.prefix}${name}`);
      writeFileSync(file, JSON.stringify([...opened]));
      writeSetting(family, `conf/${name}/${family.one}`, '1');
    }
  };
  const look = async () => {
    for (const family of [ipv4, ipv6]) await lookAt(family);
  };

  return {
    guards() {
      for (const family of [ipv4, ipv6]) guarded.set(family, toGuard(family).join());
      return { ways_out: toGuard(ipv4), ways_out_v6: toGuard(ipv6) };
    },
    async start() {
      await look();
      timer = setInterval(() => void look().catch(onError), lookEveryMs);
      timer.unref();
    },
    stop: () => clearInterval(timer),
    undo() {
      if (readdirSync('/sys/class/net').some(name => /^at\d+-/.test(name))) return;
      for (const entry of opened) {
        const family = familyOf(entry);
        if (!forwardsForAll(family)) writeSetting(family, `conf/${nameOf(entry)}/${family.one}`, '0');
      }
    },
  };
}

const familyOf = (entry: string): Family => (entry.startsWith(ipv6.prefix) ? ipv6 : ipv4);
const nameOf = (entry: string): string => entry.replace(ipv6.prefix, '');
const forwardsForAll = (family: Family): boolean => readSetting(family, family.all) === '1';

/** Interfaces that lead to public addresses, from the kernel's routing table (/proc/net/route). */
export function waysOut(routes: string): string[] {
  const names = routes
    .split('\n')
    .slice(1)
    .flatMap(row => {
      const [name, destination] = row.split('\t');
      if (name === undefined || destination === undefined || name.startsWith('at')) return [];
      const octets = Uint8Array.from(Buffer.from(destination, 'hex').reverse());
      const isDefault = destination === '00000000';
      return isDefault || protectedRange(octets) === undefined ? [name] : [];
    });
  return [...new Set(names)];
}

/** Undefined if the interface is gone, or the kernel has no such setting. */
function readSetting({ settings }: Family, path: string): string | undefined {
  return ifThere(() => readFileSync(join(settings, path), 'utf8').trim(), undefined);
}

function writeSetting(family: Family, path: string, value: string): void {
  if (readSetting(family, path) !== undefined) writeFileSync(join(family.settings, path), value);
}
