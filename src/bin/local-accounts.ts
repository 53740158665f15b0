import { createAccessToken } from '../api/app/access-tokens.ts';
import { recordLocalChange } from '../api/app/audit.ts';
import type { Change } from '../api/app/audit.ts';
import { systemClock } from '../api/app/clock.ts';
import { CredentialCache } from '../api/app/credential-cache.ts';
import { firstTeam } from '../api/app/first-team.ts';
import { type Accounts, createApiKey, createTeam } from '../api/app/provision-team.ts';
import { addMember, createUser } from '../api/app/provision-user.ts';
import { deleteAccessToken, listAccessTokens } from '../api/store/access-token.ts';
import { deleteApiKey, listApiKeys, renameApiKey } from '../api/store/api-key.ts';
import type { CredentialRecord } from '../api/store/api-key.ts';
import { openStore } from '../api/store/database.ts';
import { deleteMember, listUsers } from '../api/store/member.ts';
import { findTeam, listTeams, type TeamRecord, updateTeam } from '../api/store/team.ts';
import { findUsers, type UserRecord } from '../api/store/user.ts';
import { AtollError } from '../base/error.ts';
import type { CredentialSummary, LocalAccounts } from '../cli/local-accounts.ts';
import { ensureTeam, storeLocation } from './accounts.ts';
import { requirePair } from './installation/check.ts';
import type { Settings } from './settings.ts';

/**
 * Opens the store for the time of one command of `account`, beside a platform that may be running on it. Each change is
 * audited in its own transaction.
 */
export async function withLocalAccounts<T>(settings: Settings, account: string, use: (accounts: LocalAccounts) => Promise<T>): Promise<T> {
  await requirePair(settings);
  await using store = await openStore(storeLocation(settings));
  const clock = systemClock();
  const accounts: Accounts = { store, clock, credentials: new CredentialCache(store, clock) };
  await ensureTeam(accounts);
  const change: Changer = (operation, work) =>
    store.db.transaction().execute(async db => {
      const { teamId = null, told, answer } = await work({ ...accounts, store: { ...store, db } }, db);
      await recordLocalChange(db, { operation: `cli.${operation}`, account, atUs: clock(), teamId }, told);
      return answer;
    });
  return await use({ ...keysOf(accounts, change), ...teamsOf(accounts, change), ...usersOf(accounts, change) });
}

type Changer = <T>(
  operation: string,
  work: (accounts: Accounts, db: Accounts['store']['db']) => Promise<{ teamId?: string; told: Change; answer: T }>,
) => Promise<T>;

function keysOf({ store }: Accounts, change: Changer): Pick<LocalAccounts, 'createKey' | 'listKeys' | 'renameKey' | 'revokeKey'> {
  const noKey = (keyId: string) => new AtollError('not_found', `There is no API key with ID ${keyId}; \`atoll key list\` lists them.`);
  return {
    createKey: (slug, name) =>
      change('key.create', async (accounts, db) => {
        const team = await teamOf(db, slug);
        const { key, text } = await createApiKey(accounts, team, name);
        return { teamId: team.teamId, told: { target: `apiKey:${key.keyId}`, after: { name } }, answer: text };
      }),
    listKeys: async slug => (await listApiKeys(store.db, (await teamOf(store.db, slug)).teamId)).map(key => summaryOf('e2b_', key.keyId, key)),
    renameKey: (slug, keyId, name) =>
      change('key.rename', async (_, db) => {
        const { teamId } = await teamOf(db, slug);
        const before = (await listApiKeys(db, teamId)).find(key => key.keyId === keyId);
        if (!before || !(await renameApiKey(db, teamId, keyId, name))) throw noKey(keyId);
        return { teamId, told: { target: `apiKey:${keyId}`, before: { name: before.name }, after: { name } }, answer: undefined };
      }),
    revokeKey: (slug, keyId) =>
      change('key.revoke', async (_, db) => {
        const { teamId } = await teamOf(db, slug);
        const before = (await listApiKeys(db, teamId)).find(key => key.keyId === keyId);
        if (!before || !(await deleteApiKey(db, teamId, keyId))) throw noKey(keyId);
        return { teamId, told: { target: `apiKey:${keyId}`, before: { name: before.name } }, answer: undefined };
      }),
  };
}

function teamsOf({ store }: Accounts, change: Changer): Pick<LocalAccounts, 'createTeam' | 'listTeams' | 'renameTeam'> {
  return {
    createTeam: team =>
      change('team.create', async accounts => {
        const { teamId } = await createTeam(accounts, team);
        return { teamId, told: { target: `team:${teamId}`, after: team }, answer: teamId };
      }),
    listTeams: async () => (await listTeams(store.db)).map(({ teamId, slug, name, banned, blocked }) => ({ teamId, slug, name, banned, blocked })),
    renameTeam: (slug, name) =>
      change('team.rename', async (_, db) => {
        const { teamId, name: before } = await teamOf(db, slug);
        await updateTeam(db, teamId, { name });
        return { teamId, told: { target: `team:${teamId}`, before: { name: before }, after: { name } }, answer: undefined };
      }),
  };
}

function usersOf({ store }: Accounts, change: Changer): Omit<LocalAccounts, keyof ReturnType<typeof keysOf> | keyof ReturnType<typeof teamsOf>> {
  return {
    createUser: user =>
      change('user.create', async accounts => {
        const { userId } = await createUser(accounts, user);
        return { told: { target: `user:${userId}`, after: user }, answer: userId };
      }),
    listUsers: async () => (await listUsers(store.db)).map(({ userId, name, email }) => ({ userId, name, email })),
    join: (userId, slug) =>
      change('user.join', async (accounts, db) => {
        const [user, team] = [await userOf(db, userId), await teamOf(db, slug)];
        await addMember(accounts, team, user);
        return { teamId: team.teamId, told: { target: `user:${userId}`, after: { memberOf: team.teamId } }, answer: undefined };
      }),
    leave: (userId, slug) =>
      change('user.leave', async (_, db) => {
        const { teamId } = await teamOf(db, slug);
        if (!(await deleteMember(db, teamId, userId))) throw new AtollError('not_found', `User ${userId} is not a member of the team ${slug}.`);
        return { teamId, told: { target: `user:${userId}`, before: { memberOf: teamId } }, answer: undefined };
      }),
    createToken: (userId, name) =>
      change('token.create', async (accounts, db) => {
        const { token, text } = await createAccessToken(accounts, await userOf(db, userId), name);
        return { told: { target: `accessToken:${token.tokenId}`, after: { name, userId } }, answer: text };
      }),
    listTokens: async userId => (await listAccessTokens(store.db, (await userOf(store.db, userId)).userId)).map(token => summaryOf('sk_e2b_', token.tokenId, token)),
    revokeToken: (userId, tokenId) =>
      change('token.revoke', async (_, db) => {
        if (!(await deleteAccessToken(db, userId, tokenId))) throw new AtollError('not_found', `User ${userId} has no access token with ID ${tokenId}; \`atoll token list\` lists them.`);
        return { told: { target: `accessToken:${tokenId}`, before: { userId } }, answer: undefined };
      }),
  };
}

async function teamOf(db: Accounts['store']['db'], slug: string | undefined): Promise<TeamRecord> {
  const wanted = slug ?? firstTeam.slug;
  const team = await findTeam(db, { slug: wanted });
  if (!team) throw new AtollError('not_found', `There is no team ${wanted}; \`atoll team list\` lists them.`);
  return team;
}

async function userOf(db: Accounts['store']['db'], userId: string): Promise<UserRecord> {
  const user = (await findUsers(db, [userId])).get(userId);
  if (!user) throw new AtollError('not_found', `There is no user with ID ${userId}; \`atoll user list\` lists them.`);
  return user;
}

function summaryOf(prefix: string, id: string, credential: CredentialRecord): CredentialSummary {
  return {
    id,
    name: credential.name,
    masked: `${prefix}${credential.maskPrefix}…${credential.maskSuffix}`,
    createdAt: new Date(credential.createdAtUs / 1000),
    lastUsedAt: credential.lastUsedAtUs === null ? null : new Date(credential.lastUsedAtUs / 1000),
  };
}
