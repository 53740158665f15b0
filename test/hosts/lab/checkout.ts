import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { checkout } from './contents.ts';
import { makeOverlay, startGuest } from './guest.ts';
import { type Host, isForeign } from './host-list.ts';
import type { Image } from './image.ts';
import { mustRun } from './program.ts';

const archiveMultiple = '1G';
const packTimeoutMs = 10 * 60_000;
const unpackTimeoutMs = 10 * 60_000;
/** For running all of set-up on an emulated machine, including the base template. */
const prepareTimeoutMs = 3 * 60 * 60_000;

/**
 * The inputs of set-up's network downloads on a guest: packages of the distribution, and CRIU. If any of them changes,
 * the downloads are repeated.
 */
const setUpInputs = ['scripts/setup/system-packages.mjs', 'scripts/setup/apt.mjs', 'scripts/build-criu.mjs'];

async function setUpDigest(): Promise<string> {
  const hash = createHash('sha256');
  const inputs = await mustRun(['git', '-C', checkout, 'ls-files', '--', ...setUpInputs], { timeoutMs: packTimeoutMs });
  for (const input of inputs.trim().split('\n')) hash.update(readFileSync(join(checkout, input)));
  return hash.digest('hex').slice(0, 16);
}

/** Files that no row of the table depends on. */
const notLookedAt = [':!docs', ':!test/hosts'];

/** The short name of the newest commit to the examined files of this checkout, with `+` if files differ from it. */
export async function commitOfCheckout(): Promise<string> {
  const git = (...args: string[]) =>
    mustRun(['git', '-C', checkout, ...args, '--', '.', ...notLookedAt], { timeoutMs: packTimeoutMs });
  const changed = (await git('status', '--porcelain', '--untracked-files=no')) !== '';
  return `${(await git('log', '-1', '--format=%h')).trim()}${changed ? '+' : ''}`;
}

/**
 * An archive of what changes from run to run: the sources, the programs built from them for a checkout of this
 * machine's type, and further files (absolute paths).
 */
export async function packSources(host: Host, file: string, further: string[]): Promise<void> {
  const listed = await mustRun(
    ['git', '-C', checkout, 'ls-files', '-z', '--cached', '--others', '--exclude-standard'],
    { timeoutMs: packTimeoutMs },
  );
  const sources = listed.split('\0').filter(path => path !== '' && existsSync(join(checkout, path)));
  // The guest makes what depends on its kernel, and already has what is large.
  const built =
    isForeign(host) || host.installs === 'package'
      ? []
      : readdirSync(join(checkout, 'dist'))
          .filter(name => !/^(criu|runsc|release|\.)/.test(name))
          .map(name => `dist/${name}`);
  const paths = [...[...sources, ...built].map(path => join(checkout, path)), ...further];
  const input = paths.map(path => `${path.slice(1)}\0`).join('');
  await mustRun(['tar', '-cf', file, '-C', '/', '--null', '--files-from=-'], { timeoutMs: packTimeoutMs, input });
  // A guest that continues from a saved state knows how large this disk was.
  await mustRun(['truncate', '--size', `%${archiveMultiple}`, file], { timeoutMs: packTimeoutMs });
}

/** Makes the layers of the base template, which don't exist for another machine. */
const baseTemplate = `export ATOLL_DATA_DIR=/var/tmp/atoll ATOLL_TEMPLATES=none
bin/atoll up --json > /var/tmp/up 2>&1 & started=$!
while ! grep -q '"url"' /var/tmp/up; do kill -0 $started || { cat /var/tmp/up; exit 1; }; sleep 2; done
bin/atoll down --all && rm -rf /var/tmp/atoll /var/tmp/up`;

/** The command by which a guest unpacks an archive, to the same places as on this machine; and sets its time. */
export const unpack = (disk: string): string => `tar -xf ${disk} -C / 2>&1`;
export const unpackWithinMs = unpackTimeoutMs;

/**
 * The disk of a guest on which set-up, with the network, has found what fits its kernel, above all CRIU. It is kept
 * beside the image, or made now.
 */
export async function preparedDisk(options: {
  host: Host;
  image: Image;
  /** What set-up needs and the image lacks (absolute paths). */
  missing: string[];
  privateKey: string;
  say(text: string): void;
}): Promise<string> {
  const { host, image } = options;
  const disk = image.disk.replace(/disk\.img$/, `prepared-${await setUpDigest()}.qcow2`);
  if (existsSync(disk)) return disk;
  options.say('preparing: set-up runs once, with the network');
  // Short: it contains ssh's socket, whose path has at most 108 characters.
  const work = join(dirname(disk), 'work');
  rmSync(work, { recursive: true, force: true });
  await mustRun(['mkdir', '-p', work], { timeoutMs: packTimeoutMs });
  const [overlay, sources] = [join(work, 'disk.qcow2'), join(work, 'sources.tar')];
  await makeOverlay(image.disk, 'raw', overlay);
  await packSources(host, sources, options.missing);
  const guest = await startGuest({
    name: host.name,
    architecture: host.architecture,
    image,
    overlay,
    archives: [sources],
    network: true,
    directory: work,
    privateKey: options.privateKey,
    lifetimeMs: 2 * prepareTimeoutMs,
  });
  try {
    const script = `set -e; ${unpack('/dev/vdb')}; update-ca-certificates >/dev/null; cd ${checkout}; node scripts/prepare.mjs${isForeign(host) ? `\n${baseTemplate}` : ''}`;
    const { exitCode, output } = await guest.run(script, {
      timeoutMs: prepareTimeoutMs,
      log: join(work, 'prepare.log'),
    });
    if (exitCode !== 0) throw new Error(`set-up failed on ${host.title} (${exitCode}):\n${output.slice(-2000)}`);
    await guest.powerOff();
  } finally {
    await guest.end();
  }
  renameSync(overlay, disk);
  rmSync(work, { recursive: true, force: true });
  return disk;
}
