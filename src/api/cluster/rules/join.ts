import { isUuid } from '../../../base/id.ts';
import { microsPerSecond } from '../../../base/clock.ts';
import type { Clock } from '../../../base/clock.ts';
import { decrypt, encrypt, encryptionKey } from '../../../base/crypto/encryption.ts';
import { joinProof, newJoinToken, rejoiner } from '../../../base/crypto/join-proof.ts';
import { secretsEqual, sha256Hex } from '../../../base/crypto/secret.ts';
import { AtollError } from '../../../base/error.ts';
import { hostOf } from '../../../protocol/cluster-address.ts';
import type {
  JoinAnswer,
  JoiningMachine,
  JoinRequest,
  MachineCertificate,
  PodJoinRequest,
  ReviewPod,
} from '../../../protocol/cluster.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import type { ClusterNode } from '../record.ts';
import { findInvite, keepInvite, takeInvite } from '../store/invites.ts';
import { certifiedNode, listClusterNodes, putClusterNode } from '../store/nodes.ts';
import { requireUseful } from './claims.ts';
import { leaseSeconds } from './lease.ts';
import { type Authority, certificateDigest, renewAfterSeconds } from './authority.ts';

/** What inviting and joining need. */
export type JoinDeps = { authority: Authority | null; clock: Clock; db: Db; seed: Uint8Array };
/** What joining as a pod needs. `reviewPod` is null where no pods join. */
export type PodJoinDeps = JoinDeps & { reviewPod: ReviewPod | null };

/** How long an invitation is valid. */
const inviteSeconds = 3600;
/** More than the clocks of control processes may differ. */
const clocksDifferSeconds = 120;
const purpose = 'cluster invite';

const addressForm = /^(\[[0-9a-f:.]+\]|[a-z0-9.-]{1,253}):([1-9]\d{0,4})$/i;

/** Makes an invitation for one machine. Errors: `precondition` where this installation is not a cluster. */
export async function inviteNode(deps: JoinDeps): Promise<{ token: string; expiresAtUs: number }> {
  requireCluster(deps.authority);
  const { text, tokenId, key } = newJoinToken();
  const nowUs = deps.clock();
  const expiresAtUs = nowUs + inviteSeconds * microsPerSecond;
  const sealedKey = encrypt(encryptionKey(deps.seed, purpose), key, tokenId);
  await keepInvite(deps.db, { tokenId, sealedKey, expiresAtUs }, nowUs);
  return { token: text, expiresAtUs };
}

/** The authority of this cluster. Errors: `precondition` where this installation is not one. */
export function requireCluster(authority: Authority | null): Authority {
  if (authority) return authority;
  throw new AtollError(
    'precondition',
    'This installation is one machine (`atoll up`). Machines join control processes, which `atoll control` ' +
      'starts: docs/cluster.md.',
  );
}

/**
 * Admits a machine that proves to have the token of an invitation, and uses up the invitation. Under the ID of a known
 * machine, only that machine itself may join again. Errors: `precondition`, `unauthenticated` (without saying what is
 * wrong with the token), `invalid`, `conflict`.
 */
export async function joinNode(deps: JoinDeps, request: JoinRequest): Promise<JoinAnswer> {
  requireCluster(deps.authority);
  const { tokenId, nodeId, address, publicKey } = request;
  const sealed = await findInvite(deps.db, tokenId, deps.clock());
  const key = sealed === null ? null : decrypt(encryptionKey(deps.seed, purpose), sealed, tokenId);
  if (key === null || !secretsEqual(joinProof(key, 'node', [tokenId, nodeId, address, publicKey]), request.proof))
    throw refused();
  const certified = await admit(deps, request, tokenId, async db => {
    if (!(await takeInvite(db, tokenId))) throw refused();
  });
  const proof = joinProof(key, 'control', [tokenId, certified.certificate, certified.authority]);
  return { ...certified, proof };
}

/**
 * Admits the machine of a pod that has the nodes' service account, at the address of that machine alone: a stolen token
 * is of no use elsewhere. Errors: `precondition`, `unauthenticated`, `unavailable`, `invalid`, `conflict`,
 * `rate_limited` (too many ask at a time).
 */
export async function joinPod(deps: PodJoinDeps, request: PodJoinRequest): Promise<MachineCertificate> {
  requireCluster(deps.authority);
  if (!deps.reviewPod)
    throw new AtollError(
      'precondition',
      'No pods join this cluster: ATOLL_NODE_SERVICE_ACCOUNT of control is not set.',
    );
  const { hostAddresses } = await deps.reviewPod(request.token);
  const host = hostOf(request.address);
  if (!hostAddresses.includes(host))
    throw new AtollError('invalid', `address: the machine of this pod has ${hostAddresses.join(' and ')}, not ${host}`);
  return admit(deps, request, sha256Hex(request.token), async () => {});
}

/**
 * Certifies a machine that may join. Under the ID of a known one, only that machine itself may. `token`: the name that
 * its proof has for the token; `use`: uses up what it joins with.
 */
async function admit(
  deps: JoinDeps,
  request: JoiningMachine,
  token: string,
  use: (db: Db) => Promise<void>,
): Promise<MachineCertificate> {
  const authority = requireCluster(deps.authority);
  const { nodeId, address, publicKey } = request;
  const nowUs = deps.clock();
  if (!isUuid(nodeId)) throw new AtollError('invalid', 'nodeId: must be a UUID');
  if (!addressForm.test(address)) throw new AtollError('invalid', 'address: must be host:port');
  if (request.machine) requireUseful(request.machine, await listClusterNodes(deps.db));
  const certificate = authority.certifyNode(nodeId, publicKey);
  await inTransaction(deps.db, async db => {
    const before = await certifiedNode(db, nodeId);
    if (before && !isSameMachine(authority, before, request, token)) throw takenId(nodeId);
    // A copy of its disk has its key too, and would lock it out together with everything that runs there.
    if (before && before.address !== address && (before.leaseUntilUs ?? 0) > nowUs) throw isServing(nodeId, before);
    await use(db);
    const node = {
      nodeId,
      address,
      certificates: [certificateDigest(certificate)],
      renewAtUs: nowUs + renewAfterSeconds * microsPerSecond,
      joinedAtUs: nowUs,
    };
    if (!(await putClusterNode(db, node, before?.certificates ?? null))) throw takenId(nodeId);
  });
  return { certificate, authority: authority.certificate };
}

/**
 * Whether the sender has the key of a certificate that control has given the machine with this ID: one in the database,
 * or a later one. A database restored from a backup lacks the later ones; an earlier one, which may have been stolen
 * since, is worthless.
 */
function isSameMachine(
  authority: Authority,
  { certificates, renewAtUs }: Pick<ClusterNode, 'certificates' | 'renewAtUs'>,
  request: JoiningMachine,
  token: string,
): boolean {
  const { nodeId, address, publicKey, known } = request;
  const digest = known ? rejoiner(known.certificate, known.proof, [token, nodeId, address, publicKey]) : null;
  if (!known || digest === null) return false;
  if (certificates.includes(digest)) return true;
  const newestAtUs = renewAtUs - renewAfterSeconds * microsPerSecond;
  const issuedAtUs = authority.issuedAtUs(nodeId, known.certificate);
  return issuedAtUs !== null && issuedAtUs > newestAtUs + clocksDifferSeconds * microsPerSecond;
}

const takenId = (nodeId: string) =>
  new AtollError(
    'conflict',
    `nodeID: a machine with the ID ${nodeId} has joined already, and only that machine may join under it again. ` +
      `If it is gone for good, take it out first: \`atoll node forget ${nodeId}\`; a copy of its data directory ` +
      `needs a \`node-id\` of its own.`,
  );

const isServing = (nodeId: string, { address }: Pick<ClusterNode, 'address'>) =>
  new AtollError(
    'conflict',
    `nodeID: the machine with the ID ${nodeId} serves at ${address} now, or did some seconds ago. If this is that ` +
      'machine at another address, try again in ten seconds; a copy of its data directory is no machine of its own: ' +
      'begin with an empty one.',
    { retryAfterSeconds: leaseSeconds },
  );

const refused = () =>
  new AtollError(
    'unauthenticated',
    'The token was refused: it is wrong, used or older than an hour. `atoll cluster invite` makes another one.',
  );
