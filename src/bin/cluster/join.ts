import { existsSync } from 'node:fs';
import { machine } from 'node:os';
import { machineIdentityFile } from '../../api/installation/data-directory.ts';
import { newKey } from '../../base/crypto/certificate.ts';
import { joinProof, readJoinToken, rejoinProof } from '../../base/crypto/join-proof.ts';
import { secretsEqual, sha256Hex } from '../../base/crypto/secret.ts';
import { AtollError, messageOf } from '../../base/error.ts';
import type { ErrorCode } from '../../base/error.ts';
import { readIfThere, writeWhole } from '../../base/small-file.ts';
import { platformVersion } from '../../base/version.ts';
import type { JoinAnswer, MachineClaims } from '../../protocol/cluster.ts';
import type { NodeIdentity } from '../../wire/tls/listen-tls.ts';

const joinTimeoutMs = 30_000;

/** The identity of a machine that has joined before; undefined if it has not. */
export function readMachineIdentity(dataDir: string): NodeIdentity | undefined {
  const file = machineIdentityFile(dataDir);
  const text = readIfThere(file);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as NodeIdentity;
  } catch (cause) {
    throw new AtollError(
      'internal',
      `${file} is damaged: take this machine out of the cluster (\`atoll node forget\`), remove the file and join ` +
        'again with a new token.',
      { cause },
    );
  }
}

/** Keeps the identity for the next start. */
export function keepMachineIdentity(dataDir: string, identity: NodeIdentity): void {
  if (!existsSync(dataDir)) throw new Error('invariant broken: the data directory is not there');
  writeWhole(machineIdentityFile(dataDir), JSON.stringify(identity));
}

const refusals: Record<number, ErrorCode> = { 400: 'invalid', 401: 'unauthenticated', 409: 'conflict' };

/**
 * Joins a cluster by an invitation. The key never leaves this machine, and the token is not sent: both sides prove that
 * they have it. A machine that has joined before proves with its key that it is the same. Errors: `invalid`,
 * `unauthenticated`, `unavailable`; `conflict` if the ID belongs to another machine; `forbidden` if the answer does not
 * come from whoever made the token.
 */
export async function joinCluster(asked: Joining & { token: string }): Promise<NodeIdentity> {
  const { control } = asked;
  const { tokenId, key } = readJoinToken(asked.token);
  const { own, said, machine } = joining(asked, tokenId);
  const body = { tokenID: tokenId, ...machine, proof: joinProof(key, 'node', said) };
  const { certificate = '', authority = '', proof: theirs = '' } = await askToJoin(control, '/cluster/join', body);
  if (!secretsEqual(theirs, joinProof(key, 'control', [tokenId, certificate, authority])))
    throw new AtollError('forbidden', `What answers at ${control} is not the control that made the token.`);
  return { certificate, authority, key: own.key };
}

/**
 * Joins a cluster in Kubernetes by the token of this pod's service account. The token is sent, so whoever answers at
 * `control` is trusted. Errors: `invalid`, `unauthenticated`, `unavailable`; `conflict` if the ID belongs to another
 * machine.
 */
export async function joinAsPod(asked: Joining & { podToken: string }): Promise<NodeIdentity> {
  const { own, machine } = joining(asked, sha256Hex(asked.podToken));
  const body = { token: asked.podToken, ...machine };
  const { certificate = '', authority = '' } = await askToJoin(asked.control, '/cluster/join-pod', body);
  return { certificate, authority, key: own.key };
}

/** A machine that joins, and what it kept from before. */
type Joining = { control: string; nodeId: string; address: string; known: NodeIdentity | undefined };

/**
 * What a machine says about itself. `token`: names the means of joining in the proof that the machine is the same as
 * before.
 */
function joining({ nodeId, address, known }: Joining, token: string) {
  const own = newKey();
  const said = [token, nodeId, address, own.publicKey];
  const before = known && { known: { certificate: known.certificate, proof: rejoinProof(known.key, said) } };
  return { own, said, machine: { nodeID: nodeId, address, publicKey: own.publicKey, machine: claims(), ...before } };
}

const claims = (): MachineClaims => ({ release: platformVersion, architecture: machine(), nowMs: Date.now() });

async function askToJoin(control: string, path: string, body: unknown): Promise<Partial<JoinAnswer>> {
  const url = URL.parse(path, control);
  // ATOLL_NODE_ADDRESS takes only a host and its port, so that is what people are tempted to give here.
  if (!url || !['http:', 'https:'].includes(url.protocol))
    throw new AtollError(
      'invalid',
      `--control is ${control} and must be the URL of control, like http://CONTROL:3000.`,
    );
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(joinTimeoutMs),
  }).catch((cause: unknown) => {
    throw new AtollError('unavailable', `Control at ${control} does not answer: ${messageOf(cause)}`, { cause });
  });
  // A proxy in front may send an empty answer, which is read as null.
  const answer = ((await response.json().catch(() => null)) ?? {}) as Partial<JoinAnswer> & { message?: string };
  if (!response.ok)
    throw new AtollError(
      refusals[response.status] ?? 'unavailable',
      `Control at ${control} refused: ${answer.message ?? response.status}`,
    );
  return answer;
}
