import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError, messageOf } from '../../../base/error.ts';
import type { CordonedAddresses } from '../../../protocol/cluster.ts';

const answerTimeoutMs = 10_000;

/** Where Kubernetes is, and the folder in which the kubelet gives every pod the means to reach it. */
export type Kubernetes = { url: string; folder: string };

/** The values that every pod has. */
export const ownKubernetes: Kubernetes = {
  url: 'https://kubernetes.default.svc',
  folder: '/var/run/secrets/kubernetes.io/serviceaccount',
};

type NodeList = { items?: { status?: { addresses?: { address?: string }[] } }[] };

/** Asks for the machines that take no pods (Node, `spec.unschedulable`), as after `kubectl cordon` or `drain`. */
export function cordonsOf(kubernetes = ownKubernetes): CordonedAddresses {
  return async () => {
    const path = '/api/v1/nodes?fieldSelector=spec.unschedulable%3Dtrue';
    const { items = [] } = await askKubernetes<NodeList>(kubernetes, 'which machines are cordoned', path);
    const addresses = items.flatMap(({ status }) => status?.addresses ?? []);
    return new Set(addresses.flatMap(({ address }) => (address === undefined ? [] : [address])));
  };
}

/**
 * Asks the API server as the pod's own service account; with `body`, by POST. `what`: the subject, for the message.
 * Errors: `unavailable`.
 */
export async function askKubernetes<Answer>(
  { url, folder }: Kubernetes,
  what: string,
  path: string,
  body?: unknown,
): Promise<Answer> {
  try {
    const response = await fetch(new URL(path, url), {
      // Read each time: the kubelet replaces the token before it expires.
      headers: {
        Authorization: `Bearer ${readFileSync(join(folder, 'token'), 'utf8').trim()}`,
        'Content-Type': 'application/json',
      },
      tls: { ca: readFileSync(join(folder, 'ca.crt'), 'utf8') },
      redirect: 'error',
      signal: AbortSignal.timeout(answerTimeoutMs),
      ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${path} was answered ${response.status}`);
    return (await response.json()) as Answer;
  } catch (cause) {
    throw new AtollError('unavailable', `Kubernetes does not say ${what}: ${messageOf(cause)}`, {
      retryAfterSeconds: 5,
      cause,
    });
  }
}
