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

/** What carrying out a request once works on. */
export type OnceDeps = {
  clock: Clock;
  db: Db;
  seed: Uint8Array;
  busy: Pick<BusyExecutions, 'replicaId' | 'has' | 'while'>;
};

/** A request with a key; without one it is carried out each time. `asked`: all that makes it another request. */
type OnceRequest = { teamId: string; operation: string; key: string | undefined; asked: unknown };

/** How long a repeated request waits for the one that is under way, milliseconds: as long as a client waits. */
const waitMs = 50_000;
const pollMs = 100;

/**
 * Carries out a request that its client may repeat unless one with the same key was: then answers what that one was
 * answered. Waits for one that is under way. What is refused leaves the key free. Where a crash, or an error of the
 * platform, left open what became of it, nothing is done again: `conflict`, as for a key of another request, and for
 * one that does not end.
 */
export async function once<Answer>(
  deps: OnceDeps,
  { key, asked, ...which }: OnceRequest,
  work: () => Promise<Answer>,
): Promise<Answer> {
  if (key === undefined) return work();
  const request = { ...which, key };
  const place = JSON.stringify([request.teamId, request.operation, key]);
  // By the seed: nobody who reads the database can try what was asked for.
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
    // Asked before the row is read: one that ends in between has its answer in it.
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

/** Frees the key where the request changed nothing; else whoever asks again is told at once that nobody knows. */
async function freeing<Answer>(db: Db, request: RepeatedRequest, work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof AtollError && changedNothing(error)) await forgetRequest(db, request);
    else await endRequest(db, request, 'unknown');
    throw error;
  }
}

/** Refused, or without room or a part that it needs. Any other error may have come behind the change. */
const changedNothing = (error: AtollError) =>
  (error.status < 499 || error.status === 503 || error.status === 507) && !isOutcomeUnknown(error);
