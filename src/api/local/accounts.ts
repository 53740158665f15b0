import { createAccessToken } from '../credential/rules/access-tokens.ts';
import { recordLocalChange } from '../event/rules/audit.ts';
import { systemClock } from '../../base/clock.ts';
import { CredentialCache } from '../credential/rules/cache.ts';
import { firstTeam } from '../team/rules/first-team.ts';
import { type Accounts, createTeam } from '../team/rules/provision-team.ts';
import { createApiKey } from '../credential/rules/api-keys.ts';
import { addMember, createUser } from '../team/rules/provision-user.ts';
import { deleteAccessToken, listAccessTokens } from '../credential/store/access-token.ts';
import { deleteApiKey, listApiKeys, renameApiKey } from '../credential/store/api-key.ts';
import { connectStore } from '../database/database.ts';
import { refusePending, refuseUnknown } from '../database/migrate.ts';
import type { Db, StoreLocation } from '../database/db.ts';
import { ensureFirstTeam } from './first-accounts.ts';
import { endMembership } from '../team/rules/members.ts';
import { listUsers } from '../team/store/member.ts';
import { findTeam, listTeams, updateTeam } from '../team/store/team.ts';
import { findUsers } from '../team/store/user.ts';
import { AtollError } from '../../base/error.ts';
import { credentialNameCharactersMax } from '../../protocol/api/team.ts';
import type { Change } from '../event/record.ts';
import type { CredentialRecord } from '../credential/record.ts';
import type { TeamRecord, UserRecord } from '../team/record.ts';

/** An API key or access token as it may be shown after its creation. */
type CredentialSummary = { id: string; name: string; masked: string; createdAt: Date; lastUsedAt: Date | null };

/**
 * What the command line can do with teams, users and their credentials. Without a named team, the first one is meant.
 */
type LocalAccounts = ReturnType<typeof keysOf> & ReturnType<typeof teamsOf> & ReturnType<typeof usersOf>;

/**
 * Opens the store for one command of `account`, beside a platform that may be running on it. Each change is audited in
 * its own transaction.
 */
export async function withLocalAccounts<T>(
  location: StoreLocation,
  account: string,
  use: (accounts: LocalAccounts) => Promise<T>,
): Promise<T> {
  await using store = connectStore(location);
  const { db } = store;
  await refuseUnknown(db);
  await refusePending(db);
  const clock = systemClock();
  const credentials = new CredentialCache(store, clock);
  await ensureFirstTeam({ db, clock });
  const change: Changer = (operation, work) =>
    db.transaction().execute(async db => {
      const { teamId = null, change, answer } = await work({ db, clock, credentials });
      await recordLocalChange(db, { operation: `cli.${operation}`, account, atUs: clock(), teamId }, change);
      return answer;
    });
  return await use({ ...keysOf(db, change), ...teamsOf(db, change), ...usersOf(db, change) });
}

/** On SQLite, reads outside of the transaction wait for its end, so within a change everything uses `accounts.db`. */
type Changer = <T>(
  operation: string,
  work: (accounts: Accounts) => Promise<{ teamId?: string; change: Change; answer: T }>,
) => Promise<T>;

function keysOf(reading: Db, change: Changer) {
  const noKey = (keyId: string) =>
    new AtollError('not_found', `There is no API key with ID ${keyId}; \`atoll key list\` lists them.`);
  return {
    createKey: (slug: string | undefined, name: string) =>
      change('key.create', async accounts => {
        requireName(name);
        const team = await teamOf(accounts.db, slug);
        const { key, text } = await createApiKey(accounts, team, name);
        return {
          teamId: team.teamId,
          change: { target: `apiKey:${key.keyId}`, after: { name } },
          answer: { id: key.keyId, text },
        };
      }),
    listKeys: async (slug: string | undefined) =>
      (await listApiKeys(reading, (await teamOf(reading, slug)).teamId)).map(key => summaryOf('e2b_', key.keyId, key)),
    renameKey: (slug: string | undefined, keyId: string, name: string) =>
      change('key.rename', async ({ db }) => {
        requireName(name);
        const { teamId } = await teamOf(db, slug);
        const before = (await listApiKeys(db, teamId)).find(key => key.keyId === keyId);
        if (!before || !(await renameApiKey(db, teamId, keyId, name))) throw noKey(keyId);
        return {
          teamId,
          change: { target: `apiKey:${keyId}`, before: { name: before.name }, after: { name } },
          answer: undefined,
        };
      }),
    revokeKey: (slug: string | undefined, keyId: string) =>
      change('key.revoke', async ({ db }) => {
        const { teamId } = await teamOf(db, slug);
        const before = (await listApiKeys(db, teamId)).find(key => key.keyId === keyId);
        if (!before || !(await deleteApiKey(db, teamId, keyId))) throw noKey(keyId);
        return { teamId, change: { target: `apiKey:${keyId}`, before: { name: before.name } }, answer: undefined };
      }),
  };
}

function teamsOf(reading: Db, change: Changer) {
  return {
    createTeam: (team: { name: string; slug: string }) =>
      change('team.create', async accounts => {
        requireName(team.name);
        const { teamId } = await createTeam(accounts, team);
        return { teamId, change: { target: `team:${teamId}`, after: team }, answer: teamId };
      }),
    listTeams: async () =>
      (await listTeams(reading)).map(({ teamId, slug, name, banned, blocked }) => ({
        teamId,
        slug,
        name,
        banned,
        blocked,
      })),
    renameTeam: (slug: string, name: string) =>
      change('team.rename', async ({ db }) => {
        requireName(name);
        const { teamId, name: before } = await teamOf(db, slug);
        await updateTeam(db, teamId, { name });
        return {
          teamId,
          change: { target: `team:${teamId}`, before: { name: before }, after: { name } },
          answer: undefined,
        };
      }),
  };
}

function usersOf(reading: Db, change: Changer) {
  return {
    createUser: (user: { name: string; email: string | null }) =>
      change('user.create', async accounts => {
        requireName(user.name);
        const { userId } = await createUser(accounts, user);
        return { change: { target: `user:${userId}`, after: user }, answer: userId };
      }),
    listUsers: async () => (await listUsers(reading)).map(({ userId, name, email }) => ({ userId, name, email })),
    join: (userId: string, slug: string) =>
      change('user.join', async accounts => {
        const [user, team] = [await userOf(accounts.db, userId), await teamOf(accounts.db, slug)];
        await addMember(accounts, team, user);
        return {
          teamId: team.teamId,
          change: { target: `user:${userId}`, after: { memberOf: team.teamId } },
          answer: undefined,
        };
      }),
    leave: (userId: string, slug: string) =>
      change('user.leave', async ({ db }) => {
        const { teamId } = await teamOf(db, slug);
        if (!(await endMembership(db, teamId, userId)))
          throw new AtollError('not_found', `User ${userId} is not a member of the team ${slug}.`);
        return { teamId, change: { target: `user:${userId}`, before: { memberOf: teamId } }, answer: undefined };
      }),
    createToken: (userId: string, name: string) =>
      change('token.create', async accounts => {
        requireName(name);
        const { token, text } = await createAccessToken(accounts, await userOf(accounts.db, userId), name);
        return {
          change: { target: `accessToken:${token.tokenId}`, after: { name, userId } },
          answer: { id: token.tokenId, text },
        };
      }),
    listTokens: async (userId: string) =>
      (await listAccessTokens(reading, (await userOf(reading, userId)).userId)).map(token =>
        summaryOf('sk_e2b_', token.tokenId, token),
      ),
    revokeToken: (userId: string, tokenId: string) =>
      change('token.revoke', async ({ db }) => {
        if (!(await deleteAccessToken(db, userId, tokenId)))
          throw new AtollError(
            'not_found',
            `User ${userId} has no access token with ID ${tokenId}; \`atoll token list\` lists them.`,
          );
        return { change: { target: `accessToken:${tokenId}`, before: { userId } }, answer: undefined };
      }),
  };
}

/** The same rule as in the API, which has it in a schema. */
function requireName(name: string): void {
  const length = name.length;
  if (length >= 1 && length <= credentialNameCharactersMax && !/\p{Cc}/u.test(name)) return;
  throw new AtollError(
    'invalid',
    `name: must have 1 to ${credentialNameCharactersMax} characters, and none that are not shown`,
  );
}

async function teamOf(db: Db, slug: string | undefined): Promise<TeamRecord> {
  const wanted = slug ?? firstTeam.slug;
  const team = await findTeam(db, { slug: wanted });
  if (!team) throw new AtollError('not_found', `There is no team ${wanted}; \`atoll team list\` lists them.`);
  return team;
}

async function userOf(db: Db, userId: string): Promise<UserRecord> {
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
