import type { App } from '../api/app/context.ts';
import { ensurePublicTemplate } from '../api/app/provision-template.ts';
import { defaultTag } from '../api/app/template-reference.ts';
import type { TeamRecord } from '../api/store/team.ts';
import { taggedBuild } from '../api/store/template-resolve.ts';
import { AtollError, messageOf } from '../base/error.ts';
import type { BuildState } from '../protocol/build.ts';
import type { ShippedProtocol } from '../protocol/shipped.ts';
import type { Settings } from './settings.ts';
import type { ShippedNotes } from './shipped-record.ts';
import { planOfDefinition, runShippedBuild } from './shipped-build.ts';

/** The one that sandboxes are made from where nobody names another, and that others are built from. */
const base = 'base';

export type ShippedTemplatesOptions = {
  app: App;
  /** The part of the work that needs the machine. */
  shipped: ShippedProtocol;
  team: TeamRecord;
  settings: Pick<Settings, 'templates' | 'baseImage'>;
  /** What was built before. */
  notes: ShippedNotes;
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
async function stateOf(name: string, { app, shipped, team, notes }: ShippedTemplatesOptions): Promise<'missing' | 'outdated' | 'current'> {
  const { templateId } = await ensurePublicTemplate(app, team, name);
  const build = await taggedBuild(app.store.db, templateId, defaultTag);
  if (!build || !(await shipped.has(build.layers))) return 'missing';
  const note = notes.of(name);
  return note?.buildId === build.buildId && note.key !== (await shipped.key(name)) ? 'outdated' : 'current';
}

async function ensureShipped(name: string, options: ShippedTemplatesOptions): Promise<void> {
  const { shipped, notes, signal } = options;
  const definition = await shipped.define(name);
  const key = await shipped.key(name);
  // Installations that want it at the same time make it once.
  const cached = await shipped.begin(name, key, signal);
  let made: BuildState | null = null;
  try {
    const plan = await planOfDefinition(options, { name, definition, cached });
    const outcome = await runShippedBuild(options, { name, definition, plan });
    if (!outcome.isReady) throw new AtollError('unavailable', `The template ${name} could not be built: ${outcome.reason}`);
    await notes.put(name, { buildId: outcome.buildId, key });
    if (!cached) made = outcome.state;
  } finally {
    await shipped.end(name, key, made);
  }
}
