import { isUuid } from '../../../base/id.ts';
import { microsPerSecond } from '../../../base/clock.ts';
import type { Clock } from '../../../base/clock.ts';
import { decrypt, encrypt, encryptionKey } from '../../../base/crypto/encryption.ts';
import { joinProof, newJoinToken, rejoiner } from '../../../base/crypto/join-proof.ts';
import { secretsEqual } from '../../../base/crypto/secret.ts';
import { AtollError } from '../../../base/error.ts';
import type { JoinAnswer, JoinRequest } from '../../../protocol/cluster.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import { findInvite, keepInvite, takeInvite } from '../store/invites.ts';
import { certificatesOf, putClusterNode } from '../store/nodes.ts';
import { type Authority, certificateDigest, renewAfterSeconds } from './authority.ts';

/** What inviting and joining take. */
export type JoinDeps = { authority: Authority | null; clock: Clock; db: Db; seed: Uint8Array };

/** How long an invitation is good for. */
const inviteSeconds = 3600;
const purpose = 'cluster invite';

const addressForm = /^(\[[0-9a-f:.]+\]|[a-z0-9.-]{1,253}):([1-9]\d{0,4})$/i;

/** Makes an invitation for one machine. Errors: `precondition` where this installation is no cluster. */
export async function inviteNode(deps: JoinDeps): Promise<{ token: string; expiresAtUs: number }> {
  requireCluster(deps.authority);
  const { text, tokenId, key } = newJoinToken();
  const nowUs = deps.clock();
  const expiresAtUs = nowUs + inviteSeconds * microsPerSecond;
  const sealedKey = encrypt(encryptionKey(deps.seed, purpose), key, tokenId);
  await keepInvite(deps.db, { tokenId, sealedKey, expiresAtUs }, nowUs);
  return { token: text, expiresAtUs };
}

/** The authority of this cluster. Errors: `precondition` where this installation is none. */
export function requireCluster(authority: Authority | null): Authority {
  if (authority) return authority;
  throw new AtollError(
    'precondition',
    'This installation is one machine (`atoll up`). Machines join control processes, which `atoll control` ' +
      'starts: docs/cluster.md.',
  );
}

/**
 * Lets a machine join that proves to have the token of an invitation, which is used up by that. Under the ID of a
 * machine that is there, only that machine itself may join anew. Errors: `precondition`, `unauthenticated` (without
 * saying what is wrong of the token), `invalid`, `conflict`.
 */
export async function joinNode(deps: JoinDeps, request: JoinRequest): Promise<JoinAnswer> {
  const authority = requireCluster(deps.authority);
  const { tokenId, nodeId, address, publicKey } = request;
  const nowUs = deps.clock();
  const sealed = await findInvite(deps.db, tokenId, nowUs);
  const key = sealed === null ? null : decrypt(encryptionKey(deps.seed, purpose), sealed, tokenId);
  if (key === null || !secretsEqual(joinProof(key, 'node', [tokenId, nodeId, address, publicKey]), request.proof))
    throw refused();
  if (!isUuid(nodeId)) throw new AtollError('invalid', 'nodeId: must be a UUID');
  if (!addressForm.test(address)) throw new AtollError('invalid', 'address: must be host:port');
  const certificate = authority.certifyNode(nodeId, publicKey);
  await inTransaction(deps.db, async db => {
    const before = await certificatesOf(db, nodeId);
    if (before && !isSameMachine(before, request)) throw takenId(nodeId);
    if (!(await takeInvite(db, tokenId))) throw refused();
    const node = {
      nodeId,
      address,
      certificates: [certificateDigest(certificate)],
      renewAtUs: nowUs + renewAfterSeconds * microsPerSecond,
      joinedAtUs: nowUs,
    };
    if (!(await putClusterNode(db, node, before))) throw takenId(nodeId);
  });
  const proof = joinProof(key, 'control', [tokenId, certificate, authority.certificate]);
  return { certificate, authority: authority.certificate, proof };
}

/** Whether who asks has the key of a certificate that control has given the machine with this ID. */
function isSameMachine(certificates: readonly string[], request: JoinRequest): boolean {
  const { tokenId, nodeId, address, publicKey, known } = request;
  const digest = known ? rejoiner(known.certificate, known.proof, [tokenId, nodeId, address, publicKey]) : null;
  return digest !== null && certificates.includes(digest);
}

const takenId = (nodeId: string) =>
  new AtollError(
    'conflict',
    `nodeID: a machine with the ID ${nodeId} has joined already, and only that machine may join under it again. ` +
      `If it is gone for good, take it out first: \`atoll node forget ${nodeId}\`; a copy of its data directory ` +
      `needs a \`node-id\` of its own.`,
  );

const refused = () =>
  new AtollError(
    'unauthenticated',
    'The token was refused: it is wrong, used or older than an hour. `atoll cluster invite` makes another one.',
  );
