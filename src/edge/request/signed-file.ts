import { secretsEqual } from '../../base/crypto/secret.ts';
import { agentPort } from '../../protocol/agent.ts';
import { fileSignature, signatureParameter, signedFileOf } from '../../protocol/file-signature.ts';
import type { RequestHead } from '../../http1/request-head.ts';
import { isLoopback } from '../clients/network-of.ts';
import type { Client } from '../connection/client.ts';
import type { SandboxWay } from '../context.ts';
import { pathOf } from '../exchange/compose-request.ts';
import type { NamedPort } from './serve-sandbox.ts';
import { upgradeFor } from './upgrade.ts';

const filesPath = '/files?';
/** How many sandboxes are asked whether a signature is theirs; each takes about a microsecond. */
const sandboxesMax = 1000;

/**
 * The sandbox of a signed file URL, where nothing but the signature names it: without a host name per sandbox, clients
 * build the URL on the shared address. Only for programs on this machine, since that is where host names are missing;
 * strangers can't make the edge test their guesses. The dashboard has the same origin, so what a browser shows of the
 * file runs no script. No WebSocket is for a file: any page can open one, and whatever took the agent's place would
 * answer it. Undefined: none.
 */
export function sandboxOfSignedFile(
  { directory }: Pick<SandboxWay, 'directory'>,
  client: Client,
  head: RequestHead,
): NamedPort | undefined {
  // Behind a load balancer on this machine, everybody would count as local.
  if (!isLoopback(client.address) || client.context.trustForwardedHeaders) return undefined;
  const path = pathOf(head);
  if (!path.startsWith(filesPath) || upgradeFor(head, agentPort)) return undefined;
  const query = new URLSearchParams(path.slice(filesPath.length));
  const given = query.get(signatureParameter);
  if (given === null) return undefined;
  const signed = signedFileOf(query, head.methodIs('POST') ? 'write' : 'read');
  let looked = 0;
  for (const { sandboxId, ingress } of directory.running()) {
    if (looked++ === sandboxesMax) return undefined;
    const { accessToken } = ingress;
    if (accessToken !== null && secretsEqual(given, fileSignature(signed, accessToken)))
      return { kind: 'sandbox', sandboxId, port: agentPort, by: 'signature' };
  }
  return undefined;
}
