import { createTeam } from '../../../src/api/team/rules/provision-team.ts';
import type { TeamRecord } from '../../../src/api/team/record.ts';
import { type SharedDatabase, sharedDatabase } from './database.ts';
import { shrink } from './shrink.ts';
import { type Outcome, simulate, type Variation, Violation } from './simulate.ts';

/**
 * Runs a cluster for each of a number of seeds. Throws at the first failure, and names the seed with the shortest
 * history found that fails.
 */
export async function simulateSeeds(
  first: number,
  count: number,
  sabotage?: Variation['sabotage'],
): Promise<Outcome[]> {
  await using database = await sharedDatabase();
  const team = await createTeam({ db: database.db, clock: () => 0 }, { name: 'T', slug: 't' });
  const outcomes: Outcome[] = [];
  for (let seed = first; seed < first + count; seed++)
    outcomes.push(await simulateOrExplain(seed, database, team, sabotage));
  return outcomes;
}

async function simulateOrExplain(
  seed: number,
  database: SharedDatabase,
  team: TeamRecord,
  sabotage: Variation['sabotage'],
): Promise<Outcome> {
  const run = (leftOut: ReadonlySet<number>) =>
    simulate(seed, database, team, { leftOut, ...(sabotage && { sabotage }) });
  try {
    return await run(new Set());
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    const { leftOut, failure } = await shrink(error.actions, error, async more => {
      try {
        await run(more);
        return undefined;
      } catch (other) {
        // Another fault may result from a shorter history: any failure is as good.
        return other instanceof Violation ? other : undefined;
      }
    });
    throw new Violation(
      `${failure.message}\n(the shortest history that was found: ${error.actions - leftOut.size} of ${error.actions} actions)`,
      error.actions - leftOut.size,
    );
  }
}
