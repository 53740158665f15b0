import { join } from 'node:path';
import type { App } from '../api/app/context.ts';
import { ensurePublicTemplate } from '../api/app/provision-template.ts';
import { defaultTag } from '../api/app/template-reference.ts';
import type { TeamRecord } from '../api/store/team.ts';
import { taggedBuild } from '../api/store/template-resolve.ts';
import { AtollError, messageOf } from '../base/error.ts';
import { sha256Hex } from '../base/secret.ts';
import { readDefinition } from '../cli/template-definition.ts';
import { readAuthorities } from '../node/builds/authorities.ts';
import { digestOfFolder } from '../node/builds/bottom/definition.ts';
import { openLayerCache } from '../node/rootfs/layer-cache.ts';
import type { Node } from '../node/start.ts';
import { repository } from './repository.ts';
import type { Settings } from './settings.ts';
import { noteShippedBuild, readShippedNote } from './shipped-record.ts';
import { planOfDefinition, runShippedBuild } from './shipped-build.ts';

/** The one that sandboxes are made from where nobody names another, and that others are built from. */
const base = 'base';

export type ShippedTemplatesOptions = {
  app: App;
  node: Node;
  team: TeamRecord;
  settings: Settings;
  /** For npm, which may need its user's settings to reach a registry. */
  environment: Record<string, string>;
  onPhase: (phase: string) => void;
  signal: AbortSignal;
};

/** Builds the `base` template where it has no build whose layers are all here. */
export async function ensureBaseTemplate(options: ShippedTemplatesOptions): Promise<void> {
  if ((await stateOf(base, options)) === 'missing') await ensureShipped(base, options);
}

/** Names of templates whose build has begun, and the end of all of them, which never fails. */
export type BackgroundBuilds = { names: string[]; done: Promise<void> };

/**
 * Begins to build what of the wanted templates has no build yet, or one of a definition that has changed since, one after the other,
 * and answers at once: the platform serves meanwhile, and a create waits for its template's first build. A failure is logged, and the
 * next start tries again.
 */
export async function beginWantedTemplates(options: ShippedTemplatesOptions): Promise<BackgroundBuilds> {
  const { app, team, settings, signal } = options;
  const names: string[] = [];
  let done = Promise.resolve();
  for (const name of [base, ...settings.templates]) {
    if ((await stateOf(name, options)) === 'current') continue;
    names.push(name);
    const { templateId } = await ensurePublicTemplate(app, team, name);
    done = done
      .then(() => ensureShipped(name, options))
      .catch(error => {
        if (!signal.aborted) app.log.error(`the template ${name} could not be built; the next start tries again`, { error: messageOf(error) });
      })
      .finally(() => app.awaitedBuilds.delete(templateId));
    app.awaitedBuilds.set(templateId, done);
  }
  return { names, done };
}

/** `outdated`: its build is this installation's own, of another definition. One that somebody else has built is left alone. */
async function stateOf(name: string, { app, node, team, settings }: ShippedTemplatesOptions): Promise<'missing' | 'outdated' | 'current'> {
  const { templateId } = await ensurePublicTemplate(app, team, name);
  const build = await taggedBuild(app.store.db, templateId, defaultTag);
  if (!build?.layers.every(digest => node.layers.has(digest))) return 'missing';
  const note = readShippedNote(settings.dataDir, name);
  return note?.buildId === build.buildId && note.key !== (await contentKey(name, settings)) ? 'outdated' : 'current';
}

async function ensureShipped(name: string, options: ShippedTemplatesOptions): Promise<void> {
  const { node, settings, onPhase, signal } = options;
  const cache = openLayerCache(settings.cacheDir, node.layers);
  const folder = join(repository, 'templates', name);
  const definition = readDefinition(folder);
  const key = await contentKey(name, settings);
  const entry = `${name}-${key.slice(0, 32)}`;
  // Installations that want it at the same time make it once.
  using _ = await cache.lock(name, () => onPhase('waiting for another installation that makes it'), signal);
  const cached = await cache.take(entry);
  const plan = await planOfDefinition(options, { folder, definition, cache, cached });
  const outcome = await runShippedBuild(options, { name, definition, plan });
  if (!outcome.isReady) throw new AtollError('unavailable', `The template ${name} could not be built: ${outcome.reason}`);
  noteShippedBuild(settings.dataDir, name, { buildId: outcome.buildId, key });
  if (!cached) await cache.keep(entry, { layers: outcome.state.layers, facts: outcome.state });
}

/** Changes with everything that decides about the template and that we can know beforehand. */
async function contentKey(name: string, { baseImage, buildAuthorities }: Settings): Promise<string> {
  const folders = await Promise.all([...new Set([base, name])].map(each => digestOfFolder(join(repository, 'templates', each))));
  return sha256Hex(JSON.stringify([folders, baseImage ?? null, readAuthorities(buildAuthorities) ?? null, process.arch]));
}
