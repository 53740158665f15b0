import { AtollError } from '../../../base/error.ts';
import { randomName } from '../../../base/id.ts';
import { encrypt, encryptionKey, decrypt } from '../../../base/crypto/encryption.ts';
import { secretBounds } from '../../../protocol/api/secret.ts';
import {
  countSecrets,
  deleteSecret,
  findSecret,
  insertSecret,
  listSecrets,
  replaceSecretValue,
} from '../store/secrets.ts';
import { pageOf, parseCursor } from '../../database/cursor.ts';
import type { SecretRecord } from '../record.ts';
import type { TeamRecord } from '../../team/record.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import { lockTeam } from '../../team/store/lock.ts';
import type { Clock } from '../../../base/clock.ts';

/** Dependencies of a change of a secret. */
export type SecretDeps = { clock: Clock; db: Db; seed: Uint8Array };

/** The most entries on a page, and the default. */
export const secretPageMax = 100;
const idPrefix = 'sec_';
const namePattern = /^[a-z0-9_-]{1,128}$/;
/** Attempts of one change while others change the same secret. */
const replaceTriesMax = 5;

/** A value and, where given, metadata of a secret. */
type SecretInput = { value: string; metadata?: Record<string, string> };

/**
 * Makes a secret. Throws `invalid`, `conflict` (the name is taken), `rate_limited` (the team has as many as allowed).
 */
export async function createSecret(
  { clock, db, seed }: SecretDeps,
  team: TeamRecord,
  input: SecretInput & { name: string },
  secretsMax: number = secretBounds.secretsMax,
): Promise<SecretRecord> {
  const name = input.name.trim().toLowerCase();
  if (!namePattern.test(name) || name.startsWith(idPrefix)) {
    throw new AtollError(
      'invalid',
      `name: must be 1 to ${secretBounds.nameCharactersMax} letters, digits, "-" and "_", and not begin with ` +
        `"${idPrefix}"`,
    );
  }
  checkInput(input);
  const secretId = idPrefix + randomName(20);
  const nowUs = clock();
  const secret: SecretRecord = {
    secretId,
    teamId: team.teamId,
    name,
    currentVersion: 1,
    sealedValue: encrypt(keyOf(seed), input.value, placeOf(team.teamId, secretId)),
    metadata: input.metadata ?? {},
    createdAtUs: nowUs,
    updatedAtUs: nowUs,
  };
  await inTransaction(db, async db => {
    await lockTeam(db, team.teamId);
    if ((await countSecrets(db, team.teamId)) >= secretsMax)
      throw new AtollError('rate_limited', `The team has ${secretsMax} secrets, which is the most: delete one first`);
    if (!(await insertSecret(db, secret)))
      throw new AtollError('conflict', `name: the team has a secret "${name}" already`);
  });
  return secret;
}

/** A secret by ID or name, without its value. Throws `not_found`. */
export async function readSecret(db: Db, team: TeamRecord, idOrName: string): Promise<SecretRecord> {
  const secret = await findSecret(db, team.teamId, idOrName.trim().toLowerCase());
  if (!secret) throw new AtollError('not_found', `Secret "${idOrName}" was not found`);
  return secret;
}

/** The next version of a secret; its metadata stays unless given. Throws `not_found`, `invalid`, `conflict`. */
export async function updateSecret(
  { clock, db, seed }: SecretDeps,
  team: TeamRecord,
  idOrName: string,
  input: SecretInput,
): Promise<SecretRecord> {
  checkInput(input);
  for (let tries = 0; tries < replaceTriesMax; tries++) {
    const secret = await readSecret(db, team, idOrName);
    const replaced = await replaceSecretValue(
      db,
      { secretId: secret.secretId, version: secret.currentVersion },
      {
        sealedValue: encrypt(keyOf(seed), input.value, placeOf(team.teamId, secret.secretId)),
        metadata: input.metadata ?? secret.metadata,
        nowUs: clock(),
      },
    );
    if (replaced) return replaced;
  }
  throw new AtollError('conflict', `Secret "${idOrName}" is being changed by others: try again`);
}

/** Removes a secret. Throws `not_found`. */
export async function removeSecret(db: Db, team: TeamRecord, idOrName: string): Promise<SecretRecord> {
  const secret = await readSecret(db, team, idOrName);
  if (!(await deleteSecret(db, secret.secretId)))
    throw new AtollError('not_found', `Secret "${idOrName}" was not found`);
  return secret;
}

/** A page of a team's secrets, newest first. */
export async function listSecretsOf(
  db: Db,
  team: TeamRecord,
  page: { limit?: number; nextToken?: string },
): Promise<{ items: SecretRecord[]; nextToken: string | null }> {
  const limit = page.limit ?? secretPageMax;
  const after = page.nextToken === undefined ? undefined : parseCursor(page.nextToken);
  const found = await listSecrets(db, team.teamId, { limit: limit + 1, ...(after && { after }) });
  return pageOf(found, limit, secret => ({ atUs: secret.createdAtUs, id: secret.secretId }));
}

/** The value of a secret, only for header rules of a sandbox's egress: no route answers it. */
export function secretValue(seed: Uint8Array, secret: SecretRecord): string {
  return decrypt(keyOf(seed), secret.sealedValue, placeOf(secret.teamId, secret.secretId));
}

function keyOf(seed: Uint8Array): Uint8Array {
  return encryptionKey(seed, 'secrets of teams');
}

function placeOf(teamId: string, secretId: string): string {
  return `${teamId}/${secretId}`;
}

function checkInput({ value, metadata = {} }: SecretInput): void {
  const { valueBytesMax, metadataEntriesMax, metadataKeyBytesMax, metadataValueBytesMax, metadataBytesMax } =
    secretBounds;
  if (Buffer.byteLength(value) > valueBytesMax)
    throw new AtollError('invalid', `value: longer than ${valueBytesMax} bytes`);
  const entries = Object.entries(metadata);
  if (entries.length > metadataEntriesMax)
    throw new AtollError('invalid', `metadata: more than ${metadataEntriesMax} entries`);
  let total = 0;
  for (const [key, text] of entries) {
    const [keyBytes, textBytes] = [Buffer.byteLength(key), Buffer.byteLength(text)];
    if (keyBytes > metadataKeyBytesMax)
      throw new AtollError('invalid', `metadata: a key is longer than ${metadataKeyBytesMax} bytes`);
    if (textBytes > metadataValueBytesMax) {
      throw new AtollError('invalid', `metadata["${key}"]: longer than ${metadataValueBytesMax} bytes`);
    }
    total += keyBytes + textBytes;
  }
  if (total > metadataBytesMax)
    throw new AtollError('invalid', `metadata: ${total} bytes in all, the most is ${metadataBytesMax}`);
}
