import { SingleFlight } from '../../../base/concurrency/single-flight.ts';
import { AtollError } from '../../../base/error.ts';
import { findTemplate, parseReference, resolveBuild } from '../../template/rules/reference.ts';
import { newestBuilds } from '../../template/store/list.ts';
import { templateByName } from '../../template/store/resolve.ts';
import { readBuildLog } from '../store/log.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { Db } from '../../database/db.ts';

/**
 * Builds of templates that come with the platform, by template ID: callers that need a template's first build wait for
 * it.
 */
export class AwaitedBuilds extends SingleFlight<string, void> {
  /**
   * Begins to build the template of this name, unless that is under way; null where no such template is built on
   * demand. Answers the template's ID. The platform sets this where it has the definitions.
   */
  beginOnDemand: (name: string) => Promise<string | null> = async () => null;
  /** A client waits 60 s by default: before that, it is told to come again. */
  waitMs = 50_000;
}

/** Dependencies of waiting for a build. */
export type AwaitDeps = { awaitedBuilds: AwaitedBuilds; db: Db };

/**
 * As `resolveBuild`, but waits for a template that comes with the platform and has no build yet, and starts its build
 * where it is built on demand: the first use must not fail for being too early. Throws `unavailable` when that takes
 * too long or fails, `canceled` when the client gives up.
 */
export async function resolveAwaitedBuild(
  deps: AwaitDeps,
  team: TeamRecord,
  text: string,
  client?: AbortSignal,
): ReturnType<typeof resolveBuild> {
  try {
    return await resolveBuild(deps.db, team, text);
  } catch (error) {
    if (!(error instanceof AtollError) || error.code !== 'not_found') throw error;
    const awaited = await firstBuildOf(deps, team, text);
    if (!awaited) throw error;
    const inTime = await Promise.race([
      awaited.building.then(() => true),
      givenUp(AbortSignal.any([...(client ? [client] : []), AbortSignal.timeout(deps.awaitedBuilds.waitMs)])),
    ]);
    if (client?.aborted) throw new AtollError('canceled', 'The request was given up by the client');
    if (!inTime)
      throw new AtollError(
        'unavailable',
        `Template "${text}" comes with the platform and is still being built for the first time ` +
          `(${await progressOf(deps.db, awaited.templateId)}); try again in a moment`,
        { retryAfterSeconds: waitedAgainSeconds },
      );
    return resolveBuild(deps.db, team, text);
  }
}

/** The first build of the wanted template, started if necessary; null where none can be expected. */
async function firstBuildOf(
  { awaitedBuilds, db }: AwaitDeps,
  team: TeamRecord,
  text: string,
): Promise<{ templateId: string; building: Promise<void> } | null> {
  const reference = parseReference(text, 'templateID');
  const template = await findTemplate(db, team, reference);
  const underWay = template && awaitedBuilds.underWay(template.templateId);
  if (underWay) return { templateId: template.templateId, building: underWay };
  if (reference.namespace !== null || reference.tag !== null) return null;
  // A team's own template hides the one that comes with the platform, and a template that was made private is not
  // available to the team.
  const shared = await templateByName(db, '', reference.name);
  if (shared?.templateId !== template?.templateId) return null;
  // Somebody builds it by hand: a second build would end that one.
  if (shared && (await newestOf(db, shared.templateId))?.status === 'building') return null;
  const templateId = await awaitedBuilds.beginOnDemand(reference.name);
  const building = templateId === null ? undefined : awaitedBuilds.underWay(templateId);
  return templateId !== null && building ? { templateId, building } : null;
}

/** The last line of the log of a template's newest build. */
async function progressOf(db: Db, templateId: string): Promise<string> {
  const newest = await newestOf(db, templateId);
  const [line] = newest ? await readBuildLog(db, newest.buildId, { limit: 1, backward: true }) : [];
  return line ? line.message.slice(0, shownCharacters) : 'it waits for another one to end';
}

const newestOf = async (db: Db, templateId: string) => (await newestBuilds(db, [templateId])).get(templateId)?.newest;

/**
 * Longer than a client that waits 60 s has left: a client that repeats by itself then reports why, and does not time
 * out.
 */
const waitedAgainSeconds = 15;

/** Characters of a line of a build's log that an error repeats. */
const shownCharacters = 200;

function givenUp(signal: AbortSignal): Promise<false> {
  return new Promise(resolve => {
    if (signal.aborted) resolve(false);
    signal.addEventListener('abort', () => resolve(false), { once: true });
  });
}
