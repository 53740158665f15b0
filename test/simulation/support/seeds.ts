import { createTeam } from '../../../src/api/team/rules/provision-team.ts';
import { sharedDatabase } from './database.ts';
import { type Outcome, simulate } from './simulate.ts';

/** Runs a cluster for each of so many seeds. Throws at the first one in which something was wrong, and names it. */
export async function simulateSeeds(first: number, count: number): Promise<Outcome[]> {
  await using database = await sharedDatabase();
  const team = await createTeam({ db: database.db, clock: () => 0 }, { name: 'T', slug: 't' });
  const outcomes: Outcome[] = [];
  for (let seed = first; seed < first + count; seed++) outcomes.push(await simulate(seed, database, team));
  return outcomes;
}
