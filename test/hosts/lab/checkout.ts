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
/** Where all of set-up runs on an emulated machine, the base template too. */
const prepareTimeoutMs = 3 * 60 * 60_000;

/**
 * What set-up takes from the network on a guest, and how: packages of the distribution, and CRIU. Where any of it
 * changes, it is done anew.
 */
const setUpInputs = ['scripts/setup/system-packages.mjs', 'scripts/setup/apt.mjs', 'scripts/build-criu.mjs'];

async function setUpDigest(): Promise<string> {
  const hash = createHash('sha256');
  const inputs = await mustRun(['git', '-C', checkout, 'ls-files', '--', ...setUpInputs], { timeoutMs: packTimeoutMs });
  for (const input of inputs.trim().split('\n')) hash.update(readFileSync(join(checkout, input)));
  return hash.digest('hex').slice(0, 16);
}

/** What no row of the table depends on. */
const notLookedAt = [':!docs', ':!test/hosts'];

/**
 * The short name of the newest commit of what is looked at in this checkout, with `+` where its files differ from that.
 */
export async function commitOfCheckout(): Promise<string> {
  const git = (...args: string[]) =>
    mustRun(['git', '-C', checkout, ...args, '--', '.', ...notLookedAt], { timeoutMs: packTimeoutMs });
  const changed = (await git('status', '--porcelain', '--untracked-files=no')) !== '';
  return `${(await git('log', '-1', '--format=%h')).trim()}${changed ? '+' : ''}`;
}

/**
 * An archive of what changes from run to run: the sources, for a checkout of this machine's type the programs that are
 * built from them, and further files (absolute paths).
 */
export async function packSources(host: Host, file: string, further: string[]): Promise<void> {
  const listed = await mustRun(
    ['git', '-C', checkout, 'ls-files', '-z', '--cached', '--others', '--exclude-standard'],
    { timeoutMs: packTimeoutMs },
  );
  const sources = listed.split('\0').filter(path => path !== '' && existsSync(join(checkout, path)));
  // What fits a kernel is the guest's own, and what is large is there already.
  const built =
    isForeign(host) || host.installs === 'package'
      ? []
      : readdirSync(join(checkout, 'dist'))
          .filter(name => !/^(criu|runsc|release|\.)/.test(name))
          .map(name => `dist/${name}`);
  const paths = [...[...sources, ...built].map(path => join(checkout, path)), ...further];
  const input = paths.map(path => `${path.slice(1)}\0`).join('');
  await mustRun(['tar', '-cf', file, '-C', '/', '--null', '--files-from=-'], { timeoutMs: packTimeoutMs, input });
  // A guest that goes on from a moment of before knows how large this disk was.
  await mustRun(['truncate', '--size', `%${archiveMultiple}`, file], { timeoutMs: packTimeoutMs });
}

/** Makes the layers of the base template, for which there are none of another machine. */
const baseTemplate = `export ATOLL_DATA_DIR=/var/tmp/atoll ATOLL_TEMPLATES=none
bin/atoll up --json > /var/tmp/up 2>&1 & started=$!
while ! grep -q '"url"' /var/tmp/up; do kill -0 $started || { cat /var/tmp/up; exit 1; }; sleep 2; done
bin/atoll down --all && rm -rf /var/tmp/atoll /var/tmp/up`;

/** The command by which a guest takes what an archive holds, to the same places as on this machine; and its time. */
export const unpack = (disk: string): string => `tar -xf ${disk} -C / 2>&1`;
export const unpackWithinMs = unpackTimeoutMs;

/**
 * The disk of a guest on which set-up has found what fits its kernel, with the network: CRIU, above all. It is kept
 * beside the image, or made now.
 */
export async function preparedDisk(options: {
  host: Host;
  image: Image;
  /** What set-up needs and the image does not have (absolute paths). */
  missing: string[];
  privateKey: string;
  say(text: string): void;
}): Promise<string> {
  const { host, image } = options;
  const disk = image.disk.replace(/disk\.img$/, `prepared-${await setUpDigest()}.qcow2`);
  if (existsSync(disk)) return disk;
  options.say('preparing: set-up runs once, with the network');
  // Short: the socket of ssh is in it, whose path has at most 108 characters.
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
