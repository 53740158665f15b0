import { join } from 'node:path';
import { sha256Hex } from '../base/crypto/secret.ts';
import { archiveOf, readDefinition, stepsOf } from '../cli/template/definition.ts';
import { readAuthorities } from '../node/builds/authorities.ts';
import { ensureBaseRootfs } from '../node/builds/base-rootfs/base-rootfs.ts';
import { digestOfFolder } from '../node/builds/base-rootfs/definition.ts';
import { provisioningScripts } from '../node/builds/provision.ts';
import type { LayerCache } from '../node/layers/shared-cache.ts';
import type { Layers } from '../node/layers/store.ts';
import { AtollError } from '../base/error.ts';
import type { BuildState } from '../protocol/build.ts';
import type { ShippedProtocol } from '../protocol/shipped.ts';
import { offeredTemplates } from './offered-templates.ts';
import { nodePackagesDir, repository } from './repository.ts';
import type { Settings } from './settings/settings.ts';

/** Settings and callbacks for making the base template. */
type ShippedNodeOptions = {
  layers: Layers;
  cache: LayerCache;
  settings: Pick<Settings, 'baseImage' | 'buildAuthorities' | 'templateParts'>;
  /** For npm, which may need its user's settings to reach a registry. */
  environment: Record<string, string>;
  onPhase: (phase: string) => void;
};

/** The template that all other shipped templates are built from. */
const base = 'base';

/** The work on shipped templates that needs the machine; the node does it. */
export function shippedOnNode({ layers, cache, settings, environment, onPhase }: ShippedNodeOptions): ShippedProtocol {
  const held = new Map<string, Disposable>();
  /** How often each template was begun: a caller that waited while another one began it may be gone. */
  const turns = new Map<string, number>();
  const entryOf = (name: string, key: string) => `${name}-${key.slice(0, 32)}`;
  return {
    has: async digests => digests.every(digest => layers.has(digest)),
    key: name => contentKey(known(name), settings),
    async define(name) {
      const definition = readDefinition(folderOf(name));
      return { ...definition, steps: stepsOf(definition, settings.templateParts) };
    },
    async begin(name, key, signal) {
      const turn = (turns.get(known(name)) ?? 0) + 1;
      turns.set(name, turn);
      // An api that has begun one and then ended is done with it.
      held.get(name)?.[Symbol.dispose]();
      held.delete(name);
      const lock = await cache.lock(name, () => onPhase('waiting for another installation that makes it'), signal);
      if (turns.get(name) !== turn) {
        lock[Symbol.dispose]();
        throw new AtollError('conflict', `another api has begun with the template ${name} since`);
      }
      held.set(name, lock);
      const cached = await cache.take(entryOf(name, key));
      // Only `end` writes there.
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
    async baseRootfs(name, signal) {
      const folder = folderOf(name);
      const { fromMachine } = readDefinition(folder);
      if (!fromMachine) throw new AtollError('invalid', `${name} is not made of this machine's packages`);
      return ensureBaseRootfs({
        layers,
        cache,
        packagesFile: join(folder, fromMachine.packages),
        npmDir: join(folder, fromMachine.npm),
        imageArchive: settings.baseImage,
        npmEnvironment: environment,
        nodePackagesDir,
        onPhase,
        signal,
      });
    },
  };
}

/** A name becomes part of paths, so only existing ones are accepted. */
function known(name: string): string {
  if (name === base || offeredTemplates.includes(name)) return name;
  throw new AtollError('not_found', `no template ${JSON.stringify(name)} comes with the platform`);
}

const folderOf = (name: string) => join(repository, 'templates', known(name));

async function contentKey(
  name: string,
  { baseImage, buildAuthorities, templateParts }: Pick<Settings, 'baseImage' | 'buildAuthorities' | 'templateParts'>,
): Promise<string> {
  const folders = await Promise.all([...new Set([base, name])].map(each => digestOfFolder(folderOf(each))));
  const { steps } = readDefinition(folderOf(name));
  const parts = templateParts.filter(part => steps?.some(step => step.part === part)).sort();
  return sha256Hex(
    JSON.stringify([
      folders,
      parts,
      baseImage ?? null,
      readAuthorities(buildAuthorities) ?? null,
      process.arch,
      provisioningScripts(),
    ]),
  );
}
