import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { shippedOnNode } from '../../../src/bin/shipped-node.ts';
import { openLayerCache } from '../../../src/node/layers/shared-cache.ts';
import { startTestNode } from '../../node/support/test-node.ts';
import { type Host, isForeign } from './host-list.ts';
import { repository, startPlatform } from '../../support/platform.ts';

/** Layers of templates that this machine has made, so that guests need not make them again. */
const layerCache = '/var/cache/atoll';
/** Authorities of this machine: they determine what a template trusts, and so the name of a layer. */
export const authorities = '/usr/local/share/ca-certificates';

/** The folder of the checkout, on this machine and in guests. */
export const checkout = repository.replace(/\/$/, '');

/**
 * What set-up would download for a guest, taken from this machine instead. Paths are absolute, and the same in guests.
 */
export type Contents = {
  /** Where npm has put a package, and the digest of its content. */
  npm: Record<string, string>;
  /** Digest of the gVisor that is in `dist/runsc`. */
  runsc: string;
  /** Cached files that the base template comes from, and the layer that suites start sandboxes from. */
  layers: string[];
};

/** What a guest needs. Starts a platform for its layers, which makes missing ones. */
export async function contentsOf(host: Host): Promise<Contents> {
  // There, set-up does all of it.
  if (isForeign(host)) return { npm: {}, runsc: '', layers: [] };
  const { packages } = JSON.parse(readFileSync(join(checkout, 'node_modules/.package-lock.json'), 'utf8')) as {
    packages: Record<string, { version?: string; integrity?: string }>;
  };
  return {
    npm: Object.fromEntries(
      Object.entries(packages).map(([path, { version, integrity }]) => [path, `${version} ${integrity}`]),
    ),
    runsc: createHash('sha256')
      .update(readFileSync(join(checkout, 'dist/runsc.from')))
      .digest('hex'),
    layers: (await cachedLayers()).map(name => join(layerCache, name)),
  };
}

/** The paths of everything in `wanted` that an image made with `there` lacks. */
export function missingIn(there: Contents | undefined, wanted: Contents): string[] {
  const npm = there
    ? ['.package-lock.json', '.bin'].map(name => `node_modules/${name}`).concat(changed(there.npm, wanted.npm))
    : ['node_modules'];
  return [
    ...npm.map(path => join(checkout, path)).filter(path => existsSync(path)),
    ...(there?.runsc === wanted.runsc ? [] : ['dist/runsc', 'dist/runsc.from'].map(path => join(checkout, path))),
    ...(there ? [] : [authorities]),
    ...wanted.layers.filter(layer => !there?.layers.includes(layer)),
  ];
}

const changed = (before: Record<string, string>, now: Record<string, string>) =>
  Object.keys(now).filter(path => path !== '' && now[path] !== before[path]);

/** The cache also holds entries of other checkouts on the machine. */
async function cachedLayers(): Promise<string[]> {
  await (await startPlatform())[Symbol.asyncDispose]();
  const node = await startTestNode();
  const settings = { baseImage: undefined, buildAuthorities: authorities, templateParts: [] };
  const { layers } = node.node;
  const cache = openLayerCache(layerCache, layers);
  const key = await shippedOnNode({ layers, cache, settings, environment: {}, onPhase: () => {} }).key('base');
  await node.dispose();
  const base = `base-${key.slice(0, 32)}.json`;
  const entries = readdirSync(layerCache).filter(
    entry => entry === base || (/^test-base-.*\.json$/.test(entry) && layersIn(entry).includes(node.base)),
  );
  if (!entries.includes(base)) throw new Error(`the cache has no ${base}, which a platform has just made`);
  return [...entries, ...new Set(entries.flatMap(layersIn).map(digest => `${digest.replace(':', '-')}.erofs`))];
}

const layersIn = (entry: string) =>
  (JSON.parse(readFileSync(join(layerCache, entry), 'utf8')) as { layers: string[] }).layers;
