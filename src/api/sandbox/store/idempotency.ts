import type { Db } from '../../database/db.ts';
import type { CreatedSandbox, SandboxRecord } from '../record.ts';

/** A create that its client may repeat. `requestDigest`: equal for equal requests. */
export type Repeatable = { key: string; requestDigest: string };

/** What is known of a key: the answer of its create, or that the create is under way. */
type KnownKey = { requestDigest: string; outcome: { answer: CreatedSandbox } | 'under_way' };

/** What is known of a team's key; also null where its create was undone. */
export async function findKey(db: Db, teamId: string, key: string): Promise<KnownKey | null> {
  const row = await db
    .selectFrom('idempotency_keys')
    .leftJoin('sandboxes', 'sandboxes.sandbox_id', 'idempotency_keys.sandbox_id')
    .select(['request_digest', 'answer_json', 'answered', 'sandboxes.state'])
    .where('idempotency_keys.team_id', '=', teamId)
    .where('idempotency_key', '=', key)
    .executeTakeFirst();
  if (!row) return null;
  const requestDigest = row.request_digest;
  if (row.answered === 1) return { requestDigest, outcome: { answer: JSON.parse(row.answer_json) as CreatedSandbox } };
  return row.state === null ? null : { requestDigest, outcome: 'under_way' };
}

/**
 * Takes a key for the create of a sandbox; false where another create has it. Call it with the team locked, in the
 * transaction that writes the sandbox's row.
 */
export async function takeKey(
  db: Db,
  { key, requestDigest }: Repeatable,
  sandbox: CreatedSandbox & { teamId: string; createdAtUs: number },
): Promise<boolean> {
  const { teamId, sandboxId, templateId, agentVersion, alias, secure, network } = sandbox;
  if ((await findKey(db, teamId, key)) !== null) return false;
  const { allowPublicTraffic } = network ?? {};
  const answer: CreatedSandbox = {
    ...{ sandboxId, templateId, agentVersion, alias, secure },
    network: allowPublicTraffic === undefined ? null : { allowPublicTraffic },
  };
  await db.deleteFrom('idempotency_keys').where('team_id', '=', teamId).where('idempotency_key', '=', key).execute();
  await db
    .insertInto('idempotency_keys')
    .values({
      team_id: teamId,
      idempotency_key: key,
      request_digest: requestDigest,
      sandbox_id: sandboxId,
      answer_json: JSON.stringify(answer),
      answered: 0,
      created_at_us: sandbox.createdAtUs,
    })
    .execute();
  return true;
}

/** From here on the key stands for the sandbox. Call it in the transaction that publishes the sandbox. */
export async function settleKey(db: Db, teamId: string, key: string): Promise<void> {
  await db
    .updateTable('idempotency_keys')
    .set({ answered: 1 })
    .where('team_id', '=', teamId)
    .where('idempotency_key', '=', key)
    .execute();
}

/** If the key stood for this sandbox, it stands for nothing from here on. */
export async function freeKey(
  db: Db,
  { teamId, sandboxId }: Pick<SandboxRecord, 'teamId' | 'sandboxId'>,
  key: string,
): Promise<void> {
  await db
    .deleteFrom('idempotency_keys')
    .where('team_id', '=', teamId)
    .where('idempotency_key', '=', key)
    .where('sandbox_id', '=', sandboxId)
    .execute();
}
