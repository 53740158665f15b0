import { copyFile, lstat, mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AtollError, messageOf } from '../../../base/error.ts';
import { runCommand } from '../../../base/process/command.ts';
import { type AptSources, aptSourcesOf } from './apt-sources.ts';

/**
 * Runs a command in mount and process namespaces of its own: what it mounts and starts is gone when it ends, however it
 * ends, and a cleaning of its folder never walks into a mount of the host.
 */
const ownNamespaces = ['unshare', '--mount', '--propagation', 'private', '--pid', '--fork', '--kill-child'] as const;

/** Longest time for the packages: a slow mirror takes minutes, and a hanging one must be given up. */
const packagesTimeoutMs = 30 * 60_000;
const aptTimeoutMs = 5 * 60_000;

/** Settings of this machine's apt that its mirrors may need: how to reach them, and how old their lists may be. */
const inheritedSettings = [
  'Acquire::http::Proxy',
  'Acquire::https::Proxy',
  'Acquire::https::CAInfo',
  'Acquire::Check-Valid-Until',
  'Acquire::Check-Date',
];

/** Nobody reads these files in a sandbox, and they are a tenth of the tree. Copyright files stay, as licences ask. */
const leftOutPaths = [
  '/usr/share/man/*',
  '/usr/share/doc/*',
  '/usr/share/info/*',
  '/usr/share/locale/*',
  '/usr/share/bug/*',
];
const keptPaths = ['/usr/share/doc/*/copyright'];

/** The root filesystem of the distribution that is to be made. */
type DebianTreeOptions = {
  packages: string[];
  /** The new tree; must not exist. Files get the owners that the distribution gives them, root = 0. */
  treeDir: string;
  /** For files of this run; the caller removes it. */
  scratchDir: string;
  onPhase: (phase: string) => void;
  signal?: AbortSignal | undefined;
};

/** Explains in a sentence what to do if the mirrors do not answer; leaves other errors as they are. */
export function explained(error: unknown): unknown {
  const [, failure] = /^E: (Failed to fetch .*)$/m.exec(messageOf(error)) ?? [];
  if (failure === undefined) return error;
  return new AtollError(
    'unavailable',
    `The packages of the base template can't be had from the mirrors of this machine's apt: ${failure.trim()}. Look ` +
      'at its network, its proxy and /etc/apt, and start again; or name an image by ATOLL_BASE_IMAGE, of which the ' +
      'file of an archive needs no network.',
    { cause: error },
  );
}

/** Makes a root filesystem of `packages` with mmdebstrap from the mirrors of this machine's own apt. */
export async function makeDebianTree(options: DebianTreeOptions): Promise<void> {
  const { treeDir, scratchDir, onPhase, signal } = options;
  const sources = await hostSources(onPhase, signal);
  const sourcesFile = join(scratchDir, 'base.sources');
  await writeFile(sourcesFile, sources.deb822);
  const argv: [string, ...string[]] = [
    'mmdebstrap',
    '--mode=root',
    '--format=directory',
    '--variant=minbase',
    '--aptopt=APT::Install-Recommends "false"',
    // After a crash a half-written tree is made again, so nothing needs to reach the disk before the end.
    '--dpkgopt=force-unsafe-io',
    ...leftOutPaths.map(path => `--dpkgopt=path-exclude=${path}`),
    ...keptPaths.map(path => `--dpkgopt=path-include=${path}`),
    ...(await inheritedOptions(signal)),
    `--include=${options.packages.join(',')}`,
    sources.release,
    treeDir,
    sourcesFile,
  ];
  await runCommand(argv, {
    by: ownNamespaces,
    env: { ...toolEnvironment, TMPDIR: scratchDir },
    timeoutMs: packagesTimeoutMs,
    signal,
    onLine: line => {
      const [, phase] = /^I: ([a-z].*?)(?:\.\.\.)?$/.exec(line) ?? [];
      if (phase !== undefined) onPhase(phase);
    },
  }).catch((error: unknown) => {
    throw explained(error);
  });
  await Promise.all(sources.keyrings.map(keyring => copyKeyring(keyring, treeDir)));
  // The proxy is this machine's own setting. The files that dpkg leaves out stay left out in the sandbox too.
  await rm(join(treeDir, 'etc/apt/apt.conf.d/99mmdebstrap'), { force: true });
}

/** What tools of the distribution may see of the environment: nothing of the platform's own. */
export const toolEnvironment: Record<string, string> = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: '/root',
  LANG: 'C.UTF-8',
  DEBIAN_FRONTEND: 'noninteractive',
};

async function hostSources(onPhase: (phase: string) => void, signal: AbortSignal | undefined): Promise<AptSources> {
  const indexTargets = () =>
    runCommand(['apt-get', 'indextargets', 'Created-By: Packages'], {
      env: toolEnvironment,
      timeoutMs: aptTimeoutMs,
      signal,
    });
  const known = await indexTargets();
  // Without package lists apt does not know whose mirrors it has.
  if (/^Origin: (Debian|Ubuntu)$/m.test(known)) return aptSourcesOf(known);
  onPhase('reading package lists (apt-get update)');
  await runCommand(['apt-get', 'update'], { env: toolEnvironment, timeoutMs: aptTimeoutMs, signal });
  return aptSourcesOf(await indexTargets());
}

async function inheritedOptions(signal: AbortSignal | undefined): Promise<string[]> {
  const dump = await runCommand(['apt-config', 'dump'], { env: toolEnvironment, timeoutMs: aptTimeoutMs, signal });
  return dump.split('\n').flatMap(line => {
    const [, name, value] = /^([\w:-]+) "(.*)";$/.exec(line) ?? [];
    return name !== undefined && value !== '' && inheritedSettings.includes(name)
      ? [`--aptopt=${name} "${value}"`]
      : [];
  });
}

async function copyKeyring(keyring: string, treeDir: string): Promise<void> {
  const inside = join(treeDir, keyring);
  if (
    await lstat(inside).then(
      () => true,
      () => false,
    )
  )
    return;
  await mkdir(dirname(inside), { recursive: true });
  await copyFile(keyring, inside);
}
