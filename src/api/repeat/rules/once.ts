import { decrypt, encrypt, encryptionKey } from '../../../base/crypto/encryption.ts';
import { deriveToken } from '../../../base/crypto/secret.ts';
import type { Clock } from '../../../base/clock.ts';
import { AtollError } from '../../../base/error.ts';
import type { Db } from '../../database/db.ts';
import { isOutcomeUnknown } from '../../database/postgres/driver.ts';
import type { BusyExecutions } from '../../sandbox/rules/busy.ts';
import { requestMismatch, requestOutcomeUnknown, requestUnderWay } from '../../sandbox/rules/repeated.ts';
import { endRequest, findRequest, forgetRequest, takeRequest } from '../store/requests.ts';
import type { RepeatedRequest } from '../store/requests.ts';

/** What carrying out a request once needs. */
export type OnceDeps = {
  clock: Clock;
  db: Db;
  seed: Uint8Array;
  busy: Pick<BusyExecutions, 'replicaId' | 'has' | 'while'>;
};

/**
 * A request with a key; without a key it is carried out each time. `asked`: everything that distinguishes it from
 * another request.
 */
type OnceRequest = { teamId: string; operation: string; key: string | undefined; asked: unknown };

/** How long a repeated request waits for the one under way, milliseconds: as long as a client waits. */
const waitMs = 50_000;
const pollMs = 100;

/**
 * Carries out a request that its client may repeat, unless one with the same key was carried out: then answers what
 * that one was answered. Waits for one that is under way. A refusal leaves the key free. Where a crash, or an error of
 * the platform, left the outcome open, nothing is done again: `conflict`, as for a key of another request, and for one
 * that does not end.
 */
export async function once<Answer>(
  deps: OnceDeps,
  { key, asked, ...which }: OnceRequest,
  work: () => Promise<Answer>,
): Promise<Answer> {
  if (key === undefined) return work();
  const request = { ...which, key };
  const place = JSON.stringify([request.teamId, request.operation, key]);
  // Derived from the seed, so that a reader of the database can't guess requests.
  const requestDigest = deriveToken(deps.seed, `${request.operation} ${JSON.stringify(asked)}`);
  const sealing = encryptionKey(deps.seed, 'answers of repeated requests');
  for (const deadline = performance.now() + waitMs; performance.now() < deadline; await Bun.sleep(pollMs)) {
    const carried = await deps.busy.while(place, async () => {
      const taken = { requestDigest, replicaId: deps.busy.replicaId, nowUs: deps.clock() };
      if (!(await takeRequest(deps.db, request, taken))) return undefined;
      const answer = await freeing(deps.db, request, work);
      await endRequest(deps.db, request, { sealedAnswer: encrypt(sealing, JSON.stringify(answer), place) });
      return { answer };
    });
    if (carried) return carried.answer;
    // Checked before the row is read: the row of a request that ends in between has its answer.
    const isOurs = deps.busy.has(place);
    const known = await findRequest(deps.db, request, deps.clock());
    // It came to nothing meanwhile.
    if (!known) continue;
    if (known.requestDigest !== requestDigest) throw requestMismatch();
    if (known.sealedAnswer !== null) return JSON.parse(decrypt(sealing, known.sealedAnswer, place)) as Answer;
    const isUnderWay = known.replicaId === deps.busy.replicaId ? isOurs : known.isAlive;
    if (!isUnderWay) throw requestOutcomeUnknown();
  }
  throw requestUnderWay();
}

/**
 * Frees the key where the request changed nothing; otherwise a repeated request learns at once that the outcome is
 * unknown.
 */
async function freeing<Answer>(db: Db, request: RepeatedRequest, work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof AtollError && changedNothing(error)) await forgetRequest(db, request);
    else await endRequest(db, request, 'unknown');
    throw error;
  }
}

/** Refused, or lacking room or a part that it needs. Any other error may have come after the change. */
const changedNothing = (error: AtollError) =>
  (error.status < 499 || error.status === 503 || error.status === 507) && !isOutcomeUnknown(error);
