import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../api/app/clock.ts';
import { CredentialCache } from '../api/app/credential-cache.ts';
import { digestOf } from '../api/app/credential.ts';
import { type Accounts, createApiKey, createTeam } from '../api/app/provision-team.ts';
import { type ApiKeyRecord, deleteApiKey, findApiKey, listApiKeys } from '../api/store/api-key.ts';
import { openStore, type StoreLocation } from '../api/store/database.ts';
import { findTeam, type TeamRecord } from '../api/store/team.ts';
import { AtollError } from '../base/error.ts';
import type { KeyStore, KeySummary } from '../cli/keys.ts';
import { readIfThere, readOrMake } from './identity.ts';
import type { Settings } from './settings.ts';

/** The team that an installation starts with. */
const firstTeam = { name: 'Default', slug: 'default' };

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

/** Opens the store for the time of one command, beside a platform that may be running on it. */
export async function withKeyStore<T>(settings: Settings, use: (store: KeyStore) => Promise<T>): Promise<T> {
  await using store = await openStore(storeLocation(settings));
  const clock = systemClock();
  const accounts: Accounts = { store, clock, credentials: new CredentialCache(store, clock) };
  const team = await ensureTeam(accounts);
  return await use({
    create: async name => (await createApiKey(accounts, team, name)).text,
    list: async () => (await listApiKeys(store.db, team.teamId)).map(summaryOf),
    async revoke(keyId) {
      if (!(await deleteApiKey(store.db, team.teamId, keyId))) throw new AtollError('not_found', `There is no API key with ID ${keyId}; \`atoll key list\` lists them.`);
    },
  });
}

function summaryOf(key: ApiKeyRecord): KeySummary {
  return {
    keyId: key.keyId,
    name: key.name,
    masked: `e2b_${key.maskPrefix}…${key.maskSuffix}`,
    createdAt: new Date(key.createdAtUs / 1000),
    lastUsedAt: key.lastUsedAtUs === null ? null : new Date(key.lastUsedAtUs / 1000),
  };
}
