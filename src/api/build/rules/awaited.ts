import type { SingleFlight } from '../../../base/concurrency/single-flight.ts';
import { AtollError } from '../../../base/error.ts';
import { findTemplate, parseReference, resolveBuild } from '../../template/rules/reference.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { Db } from '../../database/db.ts';

/** A client waits 60 s by default: it is told before that to come again. */
const waitMs = 50_000;

/**
 * As `resolveBuild`, but a template that comes with the platform and is just being built is waited for: the first use
 * must not fail for having come too early. Throws `unavailable` when that takes too long, `canceled` when the client
 * gives up.
 */
export async function resolveAwaitedBuild(
  { awaitedBuilds, db }: { awaitedBuilds: SingleFlight<string, void>; db: Db },
  team: TeamRecord,
  text: string,
  client: AbortSignal,
): ReturnType<typeof resolveBuild> {
  try {
    return await resolveBuild(db, team, text);
  } catch (error) {
    if (!(error instanceof AtollError) || error.code !== 'not_found') throw error;
    const template = await findTemplate(db, team, parseReference(text, 'templateID'));
    const building = template && awaitedBuilds.underWay(template.templateId);
    if (!building) throw error;
    const inTime = await Promise.race([
      building.then(() => true),
      givenUp(AbortSignal.any([client, AbortSignal.timeout(waitMs)])),
    ]);
    if (client.aborted) throw new AtollError('canceled', 'The request was given up by the client');
    if (!inTime)
      throw new AtollError(
        'unavailable',
        `Template "${text}" comes with the platform and is still being built for the first time; try again in a moment`,
      );
    return resolveBuild(db, team, text);
  }
}

function givenUp(signal: AbortSignal): Promise<false> {
  return new Promise(resolve => {
    if (signal.aborted) resolve(false);
    signal.addEventListener('abort', () => resolve(false), { once: true });
  });
}
