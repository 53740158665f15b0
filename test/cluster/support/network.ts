import { randomBytes } from 'node:crypto';
import { AtollError } from '../../../src/base/error.ts';

/** Runs a program to its end and answers its output. */
export async function run(...command: string[]): Promise<string> {
  const child = Bun.spawn(command, { stdout: 'pipe', stderr: 'pipe', stdin: 'ignore' });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new AtollError('internal', `${command.join(' ')} ended with ${code}: ${err}`);
  return out;
}

/** A network of separate machines: a bridge, and a network namespace per machine, whose cable can be pulled. */
type Lan = AsyncDisposable & {
  /** The address of this side, where control is. */
  hostAddress: string;
  add(name: string): Promise<LanMachine>;
};

/** One machine on it. */
export type LanMachine = {
  address: string;
  /** Prefix for a command line that runs there. */
  enter: string[];
  cut(): Promise<void>;
  heal(): Promise<void>;
};

/**
 * The first three numbers of a /24 that this machine reaches only through its default route: what it talks to (a
 * mirror, a proxy, another run's network) must stay reachable, and documentation ranges are in use too.
 */
async function freePrefix(): Promise<string> {
  const taken = await run('ip', '-4', 'route', 'show');
  const first = process.pid % 256;
  for (let count = 0; count < 256; count++) {
    const prefix = `10.213.${(first + count) % 256}`;
    if (!taken.includes(`${prefix}.`)) return prefix;
  }
  throw new AtollError('no_space', 'every network of the tests is taken: 10.213.0.0/16');
}

/**
 * Makes a network. Its names on the host are random: the kernel removes those of another network only some time later.
 */
export async function makeLan(): Promise<Lan> {
  const id = randomBytes(3).toString('hex');
  const bridge = `ac${id}`;
  const prefix = await freePrefix();
  const namespaces: string[] = [];
  await run('ip', 'link', 'add', bridge, 'type', 'bridge');
  await run('ip', 'address', 'add', `${prefix}.1/24`, 'dev', bridge);
  await run('ip', 'link', 'set', bridge, 'up');
  return {
    hostAddress: `${prefix}.1`,
    async add(name) {
      const namespace = `${bridge}-${name}`;
      const cable = `${bridge}${name}`;
      const address = `${prefix}.${namespaces.length + 2}`;
      await run('ip', 'netns', 'add', namespace);
      namespaces.push(namespace);
      await run('ip', 'link', 'add', cable, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace);
      await run('ip', 'link', 'set', cable, 'master', bridge, 'up');
      const inside = (...args: string[]) => run('ip', '-n', namespace, ...args);
      await inside('link', 'set', 'lo', 'up');
      await inside('address', 'add', `${address}/24`, 'dev', 'eth0');
      await inside('link', 'set', 'eth0', 'up');
      await inside('route', 'add', 'default', 'via', `${prefix}.1`);
      return {
        address,
        enter: ['nsenter', `--net=/run/netns/${namespace}`, 'unshare', '--mount', '--propagation', 'slave'],
        cut: async () => void (await run('ip', 'link', 'set', cable, 'down')),
        heal: async () => void (await run('ip', 'link', 'set', cable, 'up')),
      };
    },
    async [Symbol.asyncDispose]() {
      for (const namespace of namespaces) await run('ip', 'netns', 'delete', namespace).catch(() => {});
      await run('ip', 'link', 'delete', bridge).catch(() => {});
    },
  };
}
