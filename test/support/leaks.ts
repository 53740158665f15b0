import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { waitFor } from './process.ts';

const registry = '/run/atoll';
const cgroupRoot = '/sys/fs/cgroup';

/**
 * Everything on the host that belongs to one installation, as sorted names: what sandboxes leave behind shows as a
 * difference.
 */
type Holdings = {
  processes: string[];
  mounts: string[];
  networkNamespaces: string[];
  links: string[];
  nftTables: string[];
  cgroups: string[];
  loopDevices: string[];
  files: string[];
};

/**
 * What the installation on `dataDir` holds now. Processes and namespaces are found by their control groups, whoever
 * started them.
 */
export function holdingsOf(dataDir: string): Holdings {
  const number = installationOf(dataDir);
  const groups = number === undefined ? [] : cgroupsNamed(`atoll${number}`);
  const pids = [...new Set(groups.flatMap(group => pidsOf(group)))];
  return {
    processes: pids.map(pid => `${pid} ${readOr(`/proc/${pid}/comm`).trim()}`).sort(),
    mounts: mountsBelow([dataDir, number === undefined ? '\0' : join(registry, String(number))]),
    networkNamespaces: [...new Set(pids.map(pid => linkOr(`/proc/${pid}/ns/net`)))].sort(),
    links: number === undefined ? [] : namesIn('/sys/class/net').filter(name => name.startsWith(`at${number}-`)),
    nftTables: number === undefined ? [] : tables().filter(name => name === `atoll${number}`),
    cgroups: groups.map(group => group.slice(cgroupRoot.length)).sort(),
    loopDevices: loopFiles().filter(file => file.startsWith(dataDir)),
    // Formatted empty disks are kept: new ones are copies of them.
    files: [
      ...(number === undefined
        ? []
        : ['bundles', 'runtime', 'boot-ids'].map(folder => join(registry, String(number), folder))),
      ...['sandboxes', 'disks'].map(folder => join(dataDir, 'node', folder)),
    ].flatMap(folder =>
      namesIn(folder)
        .filter(name => !name.startsWith('empty-'))
        .map(name => `${basename(folder)}/${name}`),
    ),
  };
}

/** What `after` has more than `before`, as `kind: name`. */
export function leaked(before: Holdings, after: Holdings): string[] {
  return (Object.keys(after) as (keyof Holdings)[]).flatMap(kind => {
    const known = new Set(before[kind]);
    return after[kind].filter(name => !known.has(name)).map(name => `${kind}: ${name}`);
  });
}

/**
 * How many things of each kind there are once nothing is being made or taken away any more: names change where blanks
 * of a pool are replaced. What is there once for all sandboxes, from the first that needs it on, does not count: layers
 * that are mounted, and the groups above those of sandboxes.
 *
 * After work whose end nobody was told of (a snapshot that is still packed, a removal behind an answer), counts can be
 * the same for longer than any time that is fit to wait for. `before`: what is to be left then. It is waited for, and
 * answered as it is where it does not come.
 */
export async function restingCounts(
  dataDir: string,
  before?: Record<string, number>,
  timeoutMs = goneTimeoutMs,
): Promise<Record<string, number>> {
  const wanted = before && JSON.stringify(before);
  let last = '';
  const look = async () => {
    const counts = JSON.stringify(countsOf(holdingsOf(dataDir)));
    const rests = counts === last && (wanted === undefined || counts === wanted);
    last = counts;
    if (!rests) await new Promise(resolve => setTimeout(resolve, restMs));
    return rests;
  };
  const rested = waitFor('the installation to rest', look, before ? timeoutMs : undefined);
  // Whoever compares says what is left.
  await (before ? rested.catch(() => {}) : rested);
  return JSON.parse(last) as Record<string, number>;
}

/** Longer than a blank takes to start. */
const restMs = 400;
/** Longer than anything takes on a busy machine that ends by itself. */
const goneTimeoutMs = 60_000;

function countsOf(holdings: Holdings): Record<string, number> {
  return Object.fromEntries(
    Object.entries(holdings).map(([kind, names]) => [
      kind,
      names.filter(name => !/\/mounts\/layers\/|\/atoll\d+$/.test(name)).length,
    ]),
  );
}

/** Where the installation on `dataDir` has its sockets and the files of runs. Throws where there is none. */
export function runDirOf(dataDir: string): string {
  const number = installationOf(dataDir);
  if (number === undefined) throw new Error(`nobody owns ${dataDir}`);
  return join(registry, String(number));
}

function installationOf(dataDir: string): number | undefined {
  const numbers = namesIn(registry).filter(name => /^\d+$/.test(name));
  const own = numbers.find(number => readOr(join(registry, number, 'owner')) === dataDir);
  return own === undefined ? undefined : Number(own);
}

/** Every group called `name` at the root of a hierarchy, and all below it. */
function cgroupsNamed(name: string): string[] {
  const hierarchies = existsSync(join(cgroupRoot, 'cgroup.controllers'))
    ? [cgroupRoot]
    : namesIn(cgroupRoot).map(controller => join(cgroupRoot, controller));
  return hierarchies
    .map(hierarchy => join(hierarchy, name))
    .filter(group => existsSync(group))
    .flatMap(withDescendants);
}

/** Groups come and go meanwhile. */
function withDescendants(group: string): string[] {
  try {
    const below = readdirSync(group, { withFileTypes: true }).filter(entry => entry.isDirectory());
    return [group, ...below.flatMap(entry => withDescendants(join(group, entry.name)))];
  } catch {
    return [];
  }
}

const pidsOf = (group: string) => readOr(join(group, 'cgroup.procs')).split('\n').filter(Boolean);

/** Mounts below the folders in any mount namespace of the machine: the platform keeps its own in a private one. */
function mountsBelow(folders: string[]): string[] {
  const seen = new Set<string>();
  const found = new Set<string>();
  for (const pid of namesIn('/proc').filter(name => /^\d+$/.test(name))) {
    const namespace = linkOr(`/proc/${pid}/ns/mnt`);
    if (seen.has(namespace)) continue;
    seen.add(namespace);
    for (const line of readOr(`/proc/${pid}/mountinfo`).split('\n')) {
      const point = line.split(' ')[4] ?? '';
      if (folders.some(folder => point.startsWith(`${folder}/`))) found.add(point);
    }
  }
  return [...found].sort();
}

function tables(): string[] {
  return [...execFileSync('nft', ['list', 'tables'], { encoding: 'utf8' }).matchAll(/^table \w+ (\S+)$/gm)].map(
    match => match[1] ?? '',
  );
}

function loopFiles(): string[] {
  return namesIn('/sys/block')
    .filter(name => name.startsWith('loop'))
    .map(name => readOr(`/sys/block/${name}/loop/backing_file`).trim())
    .filter(Boolean)
    .sort();
}

function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).sort() : [];
}

function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function linkOr(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}
