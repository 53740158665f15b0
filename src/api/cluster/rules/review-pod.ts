import { createSemaphore } from '../../../base/concurrency/semaphore.ts';
import { AtollError } from '../../../base/error.ts';
import { podTokenAudience, type ReviewPod, type ServiceAccount } from '../../../protocol/cluster.ts';
import { askKubernetes, type Kubernetes, ownKubernetes } from './kubernetes.ts';

/** Requests to Kubernetes at a time: anybody who reaches the API can cause one. */
const atOnce = 2;
const waitingMax = 64;
const question = 'whose the token is';

type TokenReview = {
  status?: {
    authenticated?: boolean;
    audiences?: string[];
    user?: { username?: string; extra?: Record<string, string[] | undefined> };
  };
};
type Pod = { metadata?: { uid?: string }; status?: { hostIP?: string; hostIPs?: { ip: string }[] } };

/**
 * Asks Kubernetes whose token it is (TokenReview), and admits the tokens of present pods of `account`: Kubernetes
 * refuses the token of a pod that is gone.
 */
export function podReview(account: ServiceAccount, kubernetes = ownKubernetes): ReviewPod {
  const semaphore = createSemaphore(atOnce);
  return async token => {
    if (semaphore.waiting() >= waitingMax)
      throw new AtollError('rate_limited', 'Too many machines join at this moment', { retryAfterSeconds: 2 });
    return semaphore.run(() => review(account, kubernetes, token));
  };
}

async function review({ namespace, name }: ServiceAccount, kubernetes: Kubernetes, token: string) {
  const { status } = await askKubernetes<TokenReview>(
    kubernetes,
    question,
    '/apis/authentication.k8s.io/v1/tokenreviews',
    { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token, audiences: [podTokenAudience] } },
  );
  const { username, extra = {} } = status?.user ?? {};
  const [podName] = extra['authentication.kubernetes.io/pod-name'] ?? [];
  const [podUid] = extra['authentication.kubernetes.io/pod-uid'] ?? [];
  const isOurs =
    status?.authenticated === true &&
    status.audiences?.includes(podTokenAudience) === true &&
    username === `system:serviceaccount:${namespace}:${name}`;
  if (!isOurs || podName === undefined || podUid === undefined) throw refused(namespace, name);
  const pod = await askKubernetes<Pod>(
    kubernetes,
    question,
    `/api/v1/namespaces/${namespace}/pods/${encodeURIComponent(podName)}`,
  );
  // Another pod of that name would be on another machine.
  if (pod.metadata?.uid !== podUid) throw refused(namespace, name);
  const { hostIP, hostIPs = [] } = pod.status ?? {};
  return { hostAddresses: [...new Set([...hostIPs.map(({ ip }) => ip), ...(hostIP === undefined ? [] : [hostIP])])] };
}

const refused = (namespace: string, name: string) =>
  new AtollError(
    'unauthenticated',
    `The token was refused: it is not that of a pod with the service account ${namespace}/${name} for the audience ` +
      `${podTokenAudience}.`,
  );
