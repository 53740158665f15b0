import type { Clock } from '../../base/clock.ts';
import { digestOf } from '../credential/rules/credential.ts';
import { findApiKey } from '../credential/store/api-key.ts';
import type { Db } from '../database/db.ts';
import type { TeamRecord } from '../team/record.ts';
import { firstTeam } from '../team/rules/first-team.ts';
import { createTeam } from '../team/rules/provision-team.ts';
import { createApiKey } from '../credential/rules/api-keys.ts';
import { findTeam } from '../team/store/team.ts';

type Deps = { db: Db; clock: Clock };

/** The installation's own team, made at the first start. */
export async function ensureFirstTeam(deps: Deps): Promise<TeamRecord> {
  const find = () => findTeam(deps.db, { slug: firstTeam.slug });
  const known = await find();
  if (known) return known;
  return createTeam(deps, firstTeam).catch(async (error: unknown) => {
    // Another process of control made it at the same moment.
    const made = await find();
    if (made) return made;
    throw error;
  });
}

/**
 * The API key of the first start: `known`, which only root can read because the store has its digest alone, or a new
 * one where that was revoked.
 */
export async function ensureFirstApiKey(deps: Deps, team: TeamRecord, known: string | undefined): Promise<string> {
  if (known !== undefined && (await knowsApiKey(deps.db, known))) return known;
  return (await createApiKey(deps, team, 'first start')).text;
}

/** Whether an API key belongs to this state. */
async function knowsApiKey(db: Db, key: string): Promise<boolean> {
  const digest = digestOf('apiKey', key);
  return digest !== null && (await findApiKey(db, digest)) !== null;
}
