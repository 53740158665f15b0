import { ensurePublicTemplate } from '../template/rules/provision.ts';
import { defaultTag } from '../template/rules/reference.ts';
import { taggedBuild, templateByName } from '../template/store/resolve.ts';
import { AtollError, messageOf } from '../../base/error.ts';
import type { BuildState } from '../../protocol/build.ts';
import type { ShippedTemplatesOptions } from './options.ts';
import { planOfDefinition, runShippedBuild } from './build.ts';
import { withRetries } from './retries.ts';

/** The template of sandboxes whose create names none, and the base of other templates. */
export const base = 'base';

/** Builds the `base` template where it has no build whose layers are all here. */
export async function ensureBaseTemplate(options: ShippedTemplatesOptions): Promise<void> {
  if ((await stateOf(base, options)) === 'missing') await ensureShipped(base, options);
}

/** Builds a template that has no build, or one of an outdated definition. */
export async function ensureTemplate(name: string, options: ShippedTemplatesOptions): Promise<void> {
  if ((await stateOf(name, options)) !== 'current') await ensureShipped(name, options);
}

/** Names of templates whose build has begun, and the end of all builds, which never fails. */
type BackgroundBuilds = { names: string[]; done: Promise<void> };

/**
 * Begins to build, one after the other, those wanted templates that have no build yet, or one of an outdated
 * definition. Answers at once: the platform serves meanwhile, and a create waits for its template's first build. A
 * failure is logged and tried again a few times, and at the next start.
 */
export async function beginWantedTemplates(options: ShippedTemplatesOptions): Promise<BackgroundBuilds> {
  const { parts, team, settings, signal } = options;
  const wanted = new Set([base, ...settings.templates]);
  const names: string[] = [];
  let done = Promise.resolve();
  for (const name of new Set([...wanted, ...settings.templatesOnDemand])) {
    const state = await stateOf(name, options);
    if (state === 'current' || (state === 'missing' && !wanted.has(name))) continue;
    names.push(name);
    const { templateId } = await ensurePublicTemplate(parts, team, name);
    const built = done.then(() =>
      withRetries(`the template ${name}`, () => ensureShipped(name, options), { log: parts.log, signal }),
    );
    done = parts.awaitedBuilds.run(templateId, () => built);
  }
  return { names, done };
}

/**
 * From now on, builds a template that may be built on demand when a create or a build asks for it and it has none.
 * Those who wait learn of a failure; the next request begins anew.
 */
export function buildOnDemand(
  { parts, settings, team, signal }: Omit<ShippedTemplatesOptions, 'shipped'>,
  build: (name: string) => Promise<void>,
): void {
  parts.awaitedBuilds.beginOnDemand = async name => {
    if (signal.aborted || !settings.templatesOnDemand.includes(name)) return null;
    const { templateId } = await ensurePublicTemplate(parts, team, name);
    parts.awaitedBuilds
      .run(templateId, () => build(name))
      .catch((error: unknown) => {
        if (!signal.aborted) parts.log.error(`the template ${name} could not be built`, { error: messageOf(error) });
      });
    return templateId;
  };
}

/**
 * `outdated`: its build is this installation's own, of another definition. A build that somebody else has made is left
 * alone.
 */
async function stateOf(
  name: string,
  { parts, shipped, builds }: ShippedTemplatesOptions,
): Promise<'missing' | 'outdated' | 'current'> {
  const template = await templateByName(parts.db, '', name);
  const build = template && (await taggedBuild(parts.db, template.templateId, defaultTag));
  if (!build || !(await shipped.has(build.layers))) return 'missing';
  const made = builds.of(name);
  return made?.buildId === build.buildId && made.key !== (await shipped.key(name)) ? 'outdated' : 'current';
}

/** Builds a template. */
export async function ensureShipped(name: string, options: ShippedTemplatesOptions): Promise<void> {
  const { shipped, builds, signal } = options;
  const definition = await shipped.define(name);
  const key = await shipped.key(name);
  // Installations that want it at the same time make it once.
  const cached = await shipped.begin(name, key, signal);
  let made: BuildState | null = null;
  try {
    const plan = await planOfDefinition(options, { name, definition, cached });
    const outcome = await runShippedBuild(options, { name, definition, plan });
    if (!outcome.isReady)
      throw new AtollError('unavailable', `The template ${name} could not be built: ${outcome.reason}`);
    await builds.put(name, { buildId: outcome.buildId, key });
    if (!cached) made = outcome.state;
  } finally {
    await shipped.end(name, key, made);
  }
}
