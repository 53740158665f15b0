import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { repository, startPlatform } from '../../support/platform.ts';
import { makeOverlay, startGuest } from './guest.ts';
import type { Host } from './host-list.ts';
import type { Contents, Image } from './image.ts';
import { mustRun } from './program.ts';

/** Layers of templates that this machine has made: guests need not make them again. */
const layerCache = '/var/cache/atoll';
/** Authorities of this machine: what a template trusts depends on them, and so does the name of a layer. */
const authorities = '/usr/local/share/ca-certificates';
const packTimeoutMs = 10 * 60_000;
const unpackTimeoutMs = 10 * 60_000;
const prepareTimeoutMs = 60 * 60_000;

/** The folder of the checkout, on this machine and in guests. */
export const checkout = repository.replace(/\/$/, '');

/** What set-up does with the network on a guest: where any of it changes, it is done anew. */
const setUpInputs = ['scripts/setup', 'scripts/build-criu.mjs'];

/** What set-up would download for a guest, taken from this machine instead: packages, npm's modules, gVisor, layers. */
export async function contentsOfGuests(): Promise<Contents> {
  const { needed } = (await import(join(checkout, 'scripts/setup/system-packages.mjs'))) as { needed: { name: string }[] };
  const layers = await cachedLayers();
  const facts = [checkout, layers, readFileSync(join(checkout, 'package-lock.json'), 'utf8'), readFileSync(join(checkout, 'dist/runsc.from'), 'utf8')];
  return {
    packages: needed.map(({ name }) => name),
    paths: [...['node_modules', 'dist/runsc', 'dist/runsc.from'].map(path => join(checkout, path)), ...layers.map(name => join(layerCache, name)), authorities],
    key: createHash('sha256').update(JSON.stringify(facts)).digest('hex'),
  };
}

/** Files of the cache that the base template of this checkout comes from. A platform that starts here makes them, where they are missing. */
async function cachedLayers(): Promise<string[]> {
  await (await startPlatform())[Symbol.asyncDispose]();
  const entries = readdirSync(layerCache).filter(name => /^base-[0-9a-f]{32}\.json$/.test(name));
  const [newest = ''] = entries.sort((a, b) => statSync(join(layerCache, b)).mtimeMs - statSync(join(layerCache, a)).mtimeMs);
  const { layers } = JSON.parse(readFileSync(join(layerCache, newest), 'utf8')) as { layers: string[] };
  return [newest, ...layers.map(digest => `${digest.replace(':', '-')}.erofs`)];
}

async function setUpDigest(): Promise<string> {
  const hash = createHash('sha256');
  const inputs = await mustRun(['git', '-C', checkout, 'ls-files', '--', ...setUpInputs], { timeoutMs: packTimeoutMs });
  for (const input of inputs.trim().split('\n')) hash.update(readFileSync(join(checkout, input)));
  return hash.digest('hex').slice(0, 16);
}

/** An archive of what changes from run to run: the sources, and the programs that are built from them. */
export async function packSources(file: string): Promise<void> {
  const listed = await mustRun(['git', '-C', checkout, 'ls-files', '-z', '--cached', '--others', '--exclude-standard'], { timeoutMs: packTimeoutMs });
  const sources = listed.split('\0').filter(path => path !== '' && existsSync(join(checkout, path)));
  // What fits a kernel is the guest's own, and what is large is there already.
  const built = readdirSync(join(checkout, 'dist')).filter(name => !/^(criu|runsc|\.)/.test(name)).map(name => `dist/${name}`);
  const input = [...sources, ...built].map(path => `${join(checkout, path).slice(1)}\0`).join('');
  await mustRun(['tar', '-cf', file, '-C', '/', '--null', '--files-from=-'], { timeoutMs: packTimeoutMs, input });
}

/** The command by which a guest takes what an archive holds, to the same places as on this machine; and its time. */
export const unpack = (disk: string): string => `tar -xf ${disk} -C / 2>&1`;
export const unpackWithinMs = unpackTimeoutMs;

/**
 * The disk of a guest on which set-up has found what fits its kernel, with the network: CRIU, above all. It is kept beside the
 * image, or made now.
 */
export async function preparedDisk(options: { host: Host; image: Image; privateKey: string; say(text: string): void }): Promise<string> {
  const { host, image } = options;
  const disk = image.disk.replace(/disk\.img$/, `prepared-${await setUpDigest()}.qcow2`);
  if (existsSync(disk)) return disk;
  options.say('preparing: set-up runs once, with the network');
  const work = `${disk}.work`;
  rmSync(work, { recursive: true, force: true });
  await mustRun(['mkdir', '-p', work], { timeoutMs: packTimeoutMs });
  const [overlay, sources] = [join(work, 'disk.qcow2'), join(work, 'sources.tar')];
  await makeOverlay(image.disk, 'raw', overlay);
  await packSources(sources);
  const guest = await startGuest({
    name: host.name, image, overlay, archives: [sources], network: true, directory: work, privateKey: options.privateKey, lifetimeMs: 2 * prepareTimeoutMs,
  });
  try {
    const script = `set -e; ${unpack('/dev/vdb')}; update-ca-certificates >/dev/null; cd ${checkout}; node scripts/prepare.mjs`;
    const { exitCode, output } = await guest.run(script, { timeoutMs: prepareTimeoutMs, log: join(work, 'prepare.log') });
    if (exitCode !== 0) throw new Error(`set-up failed on ${host.title} (${exitCode}):\n${output.slice(-2000)}`);
    await guest.powerOff();
  } finally {
    await guest.end();
  }
  renameSync(overlay, disk);
  rmSync(work, { recursive: true, force: true });
  return disk;
}
