import { AtollError } from '../../../base/error.ts';
import type { BuildLogEntry } from '../../../protocol/build.ts';
import { readBuildLog } from '../store/log.ts';
import type { BuildLogPage } from '../store/log.ts';
import { findOwnBuild } from './find.ts';
import type { BuildDetail } from '../record.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { Db } from '../../database/db.ts';

/** Lines that the reason of a failure quotes. */
const reasonLines = 20;

/** The state of a build with a page of its log, and the lines that explain its failure. */
type BuildNews = { build: BuildDetail; entries: BuildLogEntry[]; reasonEntries: BuildLogEntry[] };

/**
 * A build's state with a page of its log. Lines keep their numbers: a request that starts at the number of lines seen
 * neither loses nor repeats one, and the state is never ahead of the log. Throws `invalid` for an unknown build,
 * `forbidden`.
 */
export async function readBuildNews(
  db: Db,
  team: TeamRecord,
  ids: { templateId: string; buildId: string },
  page: Pick<BuildLogPage, 'limit' | 'offset' | 'level'>,
): Promise<BuildNews> {
  // The state is read first: a build ends after its last line was written, so a page read later has that line.
  const { build } = await findOwnBuild(db, team, ids.templateId, ids.buildId).catch((error: unknown) => {
    // Clients expect this for a missing build, and take any other answer for a failure of the platform.
    if (error instanceof AtollError && error.code === 'not_found') throw new AtollError('invalid', error.message);
    throw error;
  });
  if (build.status === 'waiting') return { build, entries: [], reasonEntries: [] };

  const entries = page.limit === 0 ? [] : await readBuildLog(db, build.buildId, page);
  const last =
    build.status === 'error' ? await readBuildLog(db, build.buildId, { limit: reasonLines, backward: true }) : [];
  const ofStep = last.filter(entry => build.reason?.step === undefined || entry.step === build.reason.step);
  return { build, entries, reasonEntries: ofStep.toReversed() };
}

/** A page of a build's log by time. Throws `invalid`, `not_found`, `forbidden`. */
export async function readBuildLogs(
  db: Db,
  team: TeamRecord,
  ids: { templateId: string; buildId: string },
  page: BuildLogPage,
): Promise<BuildLogEntry[]> {
  const { build } = await findOwnBuild(db, team, ids.templateId, ids.buildId);
  return page.limit === 0 ? [] : readBuildLog(db, build.buildId, page);
}
