import { join } from 'node:path';
import { sha256Hex } from '../base/secret.ts';
import { archiveOf, readDefinition } from '../cli/template-definition.ts';
import { readAuthorities } from '../node/builds/authorities.ts';
import { ensureBottomLayer } from '../node/builds/bottom/bottom-layer.ts';
import { digestOfFolder } from '../node/builds/bottom/definition.ts';
import { openLayerCache } from '../node/rootfs/layer-cache.ts';
import type { Layers } from '../node/rootfs/layers.ts';
import { AtollError } from '../base/error.ts';
import type { BuildState } from '../protocol/build.ts';
import type { ShippedProtocol } from '../protocol/shipped.ts';
import { offeredTemplates } from './offered-templates.ts';
import { repository } from './repository.ts';
import type { Settings } from './settings.ts';

export type ShippedNodeOptions = {
  layers: Layers;
  settings: Pick<Settings, 'baseImage' | 'buildAuthorities' | 'cacheDir'>;
  /** For npm, which may need its user's settings to reach a registry. */
  environment: Record<string, string>;
  onPhase: (phase: string) => void;
};

/** What every other shipped template is built from. */
const base = 'base';

/** The part of the work on shipped templates that needs the machine, done by its node. */
export function shippedOnNode({ layers, settings, environment, onPhase }: ShippedNodeOptions): ShippedProtocol {
  const cache = openLayerCache(settings.cacheDir, layers);
  const held = new Map<string, Disposable>();
  const entryOf = (name: string, key: string) => `${name}-${key.slice(0, 32)}`;
  return {
    has: async digests => digests.every(digest => layers.has(digest)),
    key: name => contentKey(known(name), settings),
    define: async name => readDefinition(folderOf(name)),
    async begin(name, key, signal) {
      // An api that has begun and ended is over with it.
      held.get(known(name))?.[Symbol.dispose]();
      held.set(name, await cache.lock(name, () => onPhase('waiting for another installation that makes it'), signal));
      const cached = await cache.take(entryOf(name, key));
      // Only `end` ever wrote there.
      return cached ? (cached.facts as BuildState) : null;
    },
    async end(name, key, made) {
      try {
        if (made) await cache.keep(entryOf(known(name), key), { layers: made.layers, facts: made });
      } finally {
        held.get(name)?.[Symbol.dispose]();
        held.delete(name);
      }
    },
    async files(name) {
      const folder = folderOf(name);
      return Buffer.from(await archiveOf(folder, readDefinition(folder).files ?? [])).toString('base64');
    },
    async bottom(name, signal) {
      const folder = folderOf(name);
      const { fromMachine } = readDefinition(folder);
      if (!fromMachine) throw new AtollError('invalid', `${name} is not made of this machine's packages`);
      return ensureBottomLayer({
        layers,
        cache,
        packagesFile: join(folder, fromMachine.packages),
        npmDir: join(folder, fromMachine.npm),
        imageArchive: settings.baseImage,
        npmEnvironment: environment,
        onPhase,
        signal,
      });
    },
  };
}

/** A name becomes a part of paths: nothing but those that are there. */
function known(name: string): string {
  if (name === base || offeredTemplates.includes(name)) return name;
  throw new AtollError('not_found', `no template ${JSON.stringify(name)} comes with the platform`);
}

const folderOf = (name: string) => join(repository, 'templates', known(name));

async function contentKey(name: string, { baseImage, buildAuthorities }: Pick<Settings, 'baseImage' | 'buildAuthorities'>): Promise<string> {
  const folders = await Promise.all([...new Set([base, name])].map(each => digestOfFolder(folderOf(each))));
  return sha256Hex(JSON.stringify([folders, baseImage ?? null, readAuthorities(buildAuthorities) ?? null, process.arch]));
}
