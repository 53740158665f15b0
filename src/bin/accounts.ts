import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { digestOf } from '../api/app/credential.ts';
import { firstTeam } from '../api/app/first-team.ts';
import { type Accounts, createApiKey, createTeam } from '../api/app/provision-team.ts';
import { findApiKey } from '../api/store/api-key.ts';
import type { StoreLocation } from '../api/store/database.ts';
import { findTeam, type TeamRecord } from '../api/store/team.ts';
import { readIfThere, readOrMake } from './identity.ts';
import type { Settings } from './settings.ts';

export function storeLocation({ databaseUrl, dataDir }: Settings): StoreLocation {
  return databaseUrl === undefined ? { kind: 'sqlite', path: join(dataDir, 'atoll.sqlite') } : { kind: 'postgres', url: databaseUrl };
}

export const apiKeyFile = (dataDir: string): string => join(dataDir, 'api-key');

/** The installation's own team, made at the first start. */
export async function ensureTeam(accounts: Accounts): Promise<TeamRecord> {
  return (await findTeam(accounts.store.db, { slug: firstTeam.slug })) ?? createTeam(accounts, firstTeam);
}

/**
 * The API key that `up` prints: kept in a file for root alone, since the store has only its digest.
 * One that was revoked meanwhile is replaced.
 */
export async function ensureApiKey(accounts: Accounts, team: TeamRecord, dataDir: string): Promise<string> {
  const file = apiKeyFile(dataDir);
  const kept = readIfThere(file);
  if (kept !== undefined) {
    const digest = digestOf('apiKey', kept);
    if (digest !== null && (await findApiKey(accounts.store.db, digest))) return kept;
    rmSync(file);
  }
  const { text } = await createApiKey(accounts, team, 'first start');
  return readOrMake(file, () => text);
}
