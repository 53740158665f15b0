import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ifThere } from '../../base/if-there.ts';
import { protectedRange } from '../../protocol/network/network.ts';
import { tableOf } from './rules/table-name.ts';
import { nft } from './rules/nft.ts';

/** How often it is looked whether the way out is another one by now. */
const lookEveryMs = 10_000;

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

/** `file` remembers what was changed over restarts. */
export function createForwarding({
  installation,
  file,
  onError,
}: {
  installation: number;
  file: string;
  onError(error: unknown): void;
}): Forwarding {
  const opened = new Set<string>(existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as string[]) : []);
  let guarded = '';
  let timer: ReturnType<typeof setInterval> | undefined;

  const look = async () => {
    const ways = readSetting('ip_forward') === '1' ? [] : waysOut(readFileSync('/proc/net/route', 'utf8'));
    for (const name of ways) {
      if (readSetting(`conf/${name}/forwarding`) !== '0') continue;
      opened.add(name);
      writeFileSync(file, JSON.stringify([...opened]));
      writeSetting(`conf/${name}/forwarding`, '1');
    }
    if (guarded === ways.join()) return;
    const elements =
      ways.length > 0
        ? `add element inet ${tableOf(installation)} ways_out { ${ways.map(name => `"${name}"`).join(', ')} }\n`
        : '';
    await nft(`flush set inet ${tableOf(installation)} ways_out\n${elements}`);
    guarded = ways.join();
  };

  return {
    async start() {
      await look();
      timer = setInterval(() => void look().catch(onError), lookEveryMs);
      timer.unref();
    },
    stop: () => clearInterval(timer),
    undo() {
      if (readSetting('ip_forward') === '1' || readdirSync('/sys/class/net').some(name => /^at\d+-/.test(name))) return;
      for (const name of opened) writeSetting(`conf/${name}/forwarding`, '0');
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

/** Undefined where the interface is gone. */
function readSetting(path: string): string | undefined {
  return ifThere(() => readFileSync(join('/proc/sys/net/ipv4', path), 'utf8').trim(), undefined);
}

function writeSetting(path: string, value: string): void {
  if (readSetting(path) !== undefined) writeFileSync(join('/proc/sys/net/ipv4', path), value);
}
