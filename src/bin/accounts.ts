import { join } from 'node:path';
import { digestOf } from '../api/app/credential.ts';
import { firstTeam } from '../api/app/first-team.ts';
import { type Accounts, createApiKey, createTeam } from '../api/app/provision-team.ts';
import { findApiKey } from '../api/store/api-key.ts';
import type { StoreLocation } from '../api/store/database.ts';
import { findTeam, type TeamRecord } from '../api/store/team.ts';
import { sqlitePathOf } from './data-directory.ts';
import type { Settings } from './settings.ts';

export function storeLocation({ databaseUrl, dataDir }: Settings): StoreLocation {
  return databaseUrl === undefined ? { kind: 'sqlite', path: sqlitePathOf(dataDir) } : { kind: 'postgres', url: databaseUrl };
}

export const apiKeyFile = (dataDir: string): string => join(dataDir, 'api-key');

/** The installation's own team, made at the first start. */
export async function ensureTeam(accounts: Accounts): Promise<TeamRecord> {
  return (await findTeam(accounts.store.db, { slug: firstTeam.slug })) ?? createTeam(accounts, firstTeam);
}

/** The API key that `up` prints: `kept`, which only root can read since the store has its digest alone, or a new one where it was revoked. */
export async function ensureApiKey(accounts: Accounts, team: TeamRecord, kept: string | undefined): Promise<string> {
  const digest = kept === undefined ? null : digestOf('apiKey', kept);
  if (kept !== undefined && digest !== null && (await findApiKey(accounts.store.db, digest))) return kept;
  return (await createApiKey(accounts, team, 'first start')).text;
}
