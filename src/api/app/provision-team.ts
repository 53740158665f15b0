import { AtollError } from '../../base/error.ts';
import { newUuid } from '../../base/id.ts';
import { insertApiKey } from '../store/api-key.ts';
import type { ApiKeyRecord } from '../store/api-key.ts';
import { findTeam, insertTeam } from '../store/team.ts';
import type { TeamLimits, TeamRecord } from '../store/team.ts';
import type { App } from './context.ts';
import { newCredential } from './credential.ts';

/** The part of the platform's context that accounts need: the command line has no more of it. */
export type Accounts = Pick<App, 'store' | 'clock' | 'credentials'>;

const slugPattern = /^[a-z0-9_-]{1,64}$/;

/** A new team. Its slug is the namespace of its templates. Throws `invalid` or `conflict`. */
export async function createTeam(app: Accounts, team: { name: string; slug: string; limits?: Partial<TeamLimits> }): Promise<TeamRecord> {
  if (!slugPattern.test(team.slug)) throw new AtollError('invalid', 'slug: must be 1 to 64 of lowercase letters, digits, "-" and "_"');
  if (await findTeam(app.store.db, { slug: team.slug })) throw new AtollError('conflict', `slug: "${team.slug}" is taken`);
  const record: TeamRecord = {
    teamId: newUuid(),
    name: team.name,
    slug: team.slug,
    limits: team.limits ?? {},
    banned: false,
    blocked: false,
    createdAtUs: app.clock(),
  };
  await insertTeam(app.store.db, record);
  return record;
}

/** A new API key of a team. `text` is the key itself: it is shown now or never. */
export async function createApiKey(
  app: Accounts,
  team: TeamRecord,
  name: string,
  createdBy: string | null = null,
): Promise<{ key: ApiKeyRecord; text: string }> {
  const { text, record } = newCredential('apiKey', name, app.clock());
  const key = { ...record, keyId: newUuid(), teamId: team.teamId, createdBy };
  await insertApiKey(app.store.db, key);
  return { key, text };
}
