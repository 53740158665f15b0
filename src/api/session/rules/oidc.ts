import { decrypt, encrypt, encryptionKey } from '../../../base/crypto/encryption.ts';
import { microsPerSecond } from '../../../base/clock.ts';
import type { Clock } from '../../../base/clock.ts';
import { AtollError } from '../../../base/error.ts';
import { randomHex, sha256Hex } from '../../../base/crypto/secret.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import type { UserRecord } from '../../team/record.ts';
import type { Accounts } from '../../team/rules/provision-team.ts';
import { addMember, createUser } from '../../team/rules/provision-user.ts';
import { findUserByEmail } from '../../team/store/member.ts';
import { lockTeam } from '../../team/store/lock.ts';
import { findTeam } from '../../team/store/team.ts';
import type { Flow, OidcProvider, Stranger } from './oidc-provider.ts';
import { findByIdentity, insertIdentity } from '../store/identities.ts';
import { endPassword } from './accounts.ts';
import { beginSession } from './begin.ts';
import type { Begun, From } from './begin.ts';

/** What signing in at an identity provider needs; without a provider nobody can. */
export type OidcDeps = Accounts & { seed: Uint8Array; oidc: OidcProvider | null };

/** Time from leaving for the provider to coming back, seconds. */
const flowSeconds = 10 * 60;
const partBytes = 32;
const purpose = 'atoll sign-in at an identity provider';

/** Content of a flow's `state`, encrypted: any process can go on with it, and none has to remember it. */
type Sealed = Omit<Flow, 'state'> & { binding: string; expiresAtUs: number };

/**
 * Where a browser goes to sign in. `binding` is the digest of a secret of its page: only that page's answer is
 * accepted, so that somebody else's answer can't sign the browser in as them.
 */
export async function beginAtProvider(
  { oidc, seed, clock }: { oidc: OidcProvider | null; seed: Uint8Array; clock: Clock },
  binding: string,
  origin: string,
): Promise<string> {
  const provider = requireProvider(oidc);
  const flow = {
    nonce: randomHex(partBytes),
    verifier: randomHex(partBytes),
    redirectUri: `${origin}/dashboard/signin`,
  };
  const sealed: Sealed = { ...flow, binding, expiresAtUs: clock() + flowSeconds * microsPerSecond };
  const state = encrypt(encryptionKey(seed, purpose), JSON.stringify(sealed), 'state');
  return provider.urlOf({ ...flow, state });
}

/**
 * Begins a session of a person who has come back from the provider with this query. Throws `unauthenticated`,
 * `forbidden` for a person who has no account and gets none, and `unavailable`.
 */
export async function finishAtProvider(
  deps: OidcDeps,
  { query, secret }: { query: string; secret: string },
  from: From,
): Promise<Begun> {
  const provider = requireProvider(deps.oidc);
  const params = new URLSearchParams(query);
  const state = params.get('state') ?? '';
  const sealed = open(deps.seed, state);
  if (!sealed || sealed.binding !== sha256Hex(secret) || deps.clock() >= sealed.expiresAtUs)
    throw new AtollError('unauthenticated', 'This sign-in was begun elsewhere, or too long ago: begin again');
  const stranger = await provider.redeem(params, { ...sealed, state });
  const user = await accountOf(deps, provider, stranger);
  return beginSession(deps, { userId: user.userId, isOperator: user.isOperator }, from);
}

/** The name of the provider at which people can sign in, or null. */
export const providerName = (oidc: OidcProvider | null): string | null => oidc?.name ?? null;

function requireProvider(oidc: OidcProvider | null): OidcProvider {
  if (oidc) return oidc;
  throw new AtollError('not_found', 'This installation has no identity provider (ATOLL_OIDC_FILE)');
}

function open(seed: Uint8Array, state: string): Sealed | null {
  try {
    return JSON.parse(decrypt(encryptionKey(seed, purpose), state, 'state')) as Sealed;
  } catch {
    return null; // it is not one of ours
  }
}

/** The account of an identity: its own, the one with its verified address, or a new one. */
async function accountOf(deps: OidcDeps, { rules }: OidcProvider, stranger: Stranger): Promise<UserRecord> {
  const known = await findByIdentity(deps.db, stranger);
  if (known) return known;
  const { verifiedEmail } = stranger;
  const domain = verifiedEmail?.slice(verifiedEmail.lastIndexOf('@') + 1);
  const isBelieved = domain !== undefined && (rules.emailDomains ?? []).some(one => one.toLowerCase() === domain);
  const email = isBelieved ? verifiedEmail : null;
  const user = await inTransaction(deps.db, async db => {
    const nowUs = deps.clock();
    const user =
      (email === null ? null : await joinAccount(db, email)) ??
      (await createNewcomer({ ...deps, db }, rules.newcomers, { email, name: stranger.name }));
    await insertIdentity(db, stranger, { userId: user.userId, nowUs });
    return user;
  }).catch(async (error: unknown) => {
    // Another page of the same person was faster.
    const made = await findByIdentity(deps.db, stranger);
    if (made) return made;
    throw error;
  });
  deps.credentials.clear();
  return user;
}

/**
 * The account with this address, for a person who has proven to own the address; null where there is none. Somebody who
 * made the account with an invitation may have given any address, and a password: their ways to come back end here. An
 * account without a password was made by an operator, or here.
 */
async function joinAccount(db: Db, email: string): Promise<UserRecord | null> {
  const user = await findUserByEmail(db, email);
  if (!user?.hasPassword) return user;
  await endPassword(db, user.userId);
  return { ...user, hasPassword: false };
}

async function createNewcomer(
  deps: Accounts,
  newcomers: OidcProvider['rules']['newcomers'],
  { email, name }: { email: string | null; name: string },
): Promise<UserRecord> {
  // Where domains are named, a person without an address there is a stranger.
  if (!newcomers || email === null)
    throw new AtollError('forbidden', 'You have no account here: ask somebody of a team for an invitation');
  const team =
    (await findTeam(deps.db, { teamId: newcomers.team })) ?? (await findTeam(deps.db, { slug: newcomers.team }));
  if (!team)
    throw new AtollError('precondition', `ATOLL_OIDC_FILE: newcomers.team: there is no team "${newcomers.team}"`);
  // Locks the team before the user, as invitations do: in another order each would wait for the other.
  await lockTeam(deps.db, team.teamId);
  const user = await createUser(deps, { email, name });
  await addMember(deps, team, user, newcomers.role);
  return user;
}
