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
 * What the installation on `dataDir` holds now. Processes and namespaces are found by their cgroups, whoever started
 * them.
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

/** What `after` has and `before` lacks, as `kind: name`. */
export function leaked(before: Holdings, after: Holdings): string[] {
  return (Object.keys(after) as (keyof Holdings)[]).flatMap(kind => {
    const known = new Set(before[kind]);
    return after[kind].filter(name => !known.has(name)).map(name => `${kind}: ${name}`);
  });
}

/**
 * How many things of each kind exist once nothing is being made or removed any more: names change when standby
 * sandboxes of a pool are replaced. Things shared by all sandboxes, made for the first that needs them, do not count:
 * mounted layers, and the cgroups above those of sandboxes.
 *
 * After work whose end was not reported (a snapshot that is still being packed, a removal after an answer), counts can
 * stay the same for longer than any reasonable wait. `before`: the counts expected then. This waits for them, and
 * answers the present ones if they do not come.
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
  // The caller compares and says what is left.
  await (before ? rested.catch(() => {}) : rested);
  return JSON.parse(last) as Record<string, number>;
}

/** Longer than a standby sandbox takes to start. */
const restMs = 400;
/** Longer than anything that ends by itself takes on a busy machine. */
const goneTimeoutMs = 60_000;

function countsOf(holdings: Holdings): Record<string, number> {
  return Object.fromEntries(
    Object.entries(holdings).map(([kind, names]) => [
      kind,
      names.filter(name => !/\/mounts\/layers\/|\/atoll\d+$/.test(name)).length,
    ]),
  );
}

/** Where the installation on `dataDir` has its sockets and runtime files. Throws if there is none. */
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

/** Every cgroup called `name` at the root of a hierarchy, and all below it. */
function cgroupsNamed(name: string): string[] {
  const hierarchies = existsSync(join(cgroupRoot, 'cgroup.controllers'))
    ? [cgroupRoot]
    : namesIn(cgroupRoot).map(controller => join(cgroupRoot, controller));
  return hierarchies
    .map(hierarchy => join(hierarchy, name))
    .filter(group => existsSync(group))
    .flatMap(withDescendants);
}

/** Cgroups come and go meanwhile. */
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
