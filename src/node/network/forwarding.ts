import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ifThere } from '../../base/if-there.ts';
import { protectedRange } from '../../protocol/network/network.ts';
import { waysOutV6 } from './ipv6.ts';
import { tableOf } from './rules/table-name.ts';
import { nft } from './rules/nft.ts';

/** How often it is looked whether the way out is another one by now. */
const lookEveryMs = 10_000;

/** How the host's kernel says which packets it passes on. */
type Family = {
  settings: string;
  /** The setting that is 1 where all interfaces forward. */
  all: string;
  /** The same for one interface, in its directory. */
  one: string;
  /** The set of the host table that holds the interfaces which forward for sandboxes alone. */
  set: string;
  waysOut(): string[];
};

const ipv4: Family = {
  settings: '/proc/sys/net/ipv4',
  all: 'ip_forward',
  one: 'forwarding',
  set: 'ways_out',
  waysOut: () => waysOut(readFileSync('/proc/net/route', 'utf8')),
};

/** `forwarding` of a single interface makes it a router to its neighbours, and would pass nothing on. Linux 6.17. */
const ipv6: Family = {
  settings: '/proc/sys/net/ipv6',
  all: 'conf/all/forwarding',
  one: 'force_forwarding',
  set: 'ways_out_v6',
  waysOut: waysOutV6,
};

/**
 * Whether the host passes packets on, by interface. A sandbox's link does from when it is made (native/link.c); the
 * answers come in by the host's own way out, which must, too, and no other interface. Where the host forwards for all
 * anyway, nothing is changed.
 */
type Forwarding = {
  start(): Promise<void>;
  stop(): void;
  /** Puts back what was changed, unless another installation needs it. */
  undo(): void;
};

/** `file` remembers what was changed over restarts, of both families. `ipv6`: sandboxes have it. */
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
  const families = hasIpv6 ? [ipv4, ipv6] : [ipv4];
  // Interfaces of IPv4 by their names, as earlier releases wrote them; of IPv6 with their family before.
  const opened = new Set<string>(existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as string[]) : []);
  const guarded = new Map<Family, string>();
  let timer: ReturnType<typeof setInterval> | undefined;

  const lookAt = async (family: Family) => {
    const ways = readSetting(family, family.all) === '1' ? [] : family.waysOut();
    for (const name of ways) {
      if (readSetting(family, `conf/${name}/${family.one}`) !== '0') continue;
      opened.add(family === ipv6 ? `ipv6 ${name}` : name);
      writeFileSync(file, JSON.stringify([...opened]));
      writeSetting(family, `conf/${name}/${family.one}`, '1');
    }
    if ((guarded.get(family) ?? '') === ways.join()) return;
    const set = `inet ${tableOf(installation)} ${family.set}`;
    const elements = ways.length > 0 ? `add element ${set} { ${ways.map(name => `"${name}"`).join(', ')} }\n` : '';
    await nft(`flush set ${set}\n${elements}`);
    guarded.set(family, ways.join());
  };
  const look = async () => {
    for (const family of families) await lookAt(family);
  };

  return {
    async start() {
      await look();
      timer = setInterval(() => void look().catch(onError), lookEveryMs);
      timer.unref();
    },
    stop: () => clearInterval(timer),
    undo() {
      if (readdirSync('/sys/class/net').some(name => /^at\d+-/.test(name))) return;
      for (const entry of opened) {
        const family = entry.startsWith('ipv6 ') ? ipv6 : ipv4;
        if (readSetting(family, family.all) === '1') continue;
        writeSetting(family, `conf/${entry.replace('ipv6 ', '')}/${family.one}`, '0');
      }
    },
  };
}

/** Interfaces by which public addresses are reached, of the kernel's table of routes (/proc/net/route). */
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

/** Undefined where the interface is gone, or the kernel has no such setting. */
function readSetting({ settings }: Family, path: string): string | undefined {
  return ifThere(() => readFileSync(join(settings, path), 'utf8').trim(), undefined);
}

function writeSetting(family: Family, path: string, value: string): void {
  if (readSetting(family, path) !== undefined) writeFileSync(join(family.settings, path), value);
}
