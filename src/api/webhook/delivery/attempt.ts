import { messageOf } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import { unlessAborted } from '../../../base/concurrency/unless-aborted.ts';
import { platformVersion } from '../../../base/version.ts';
import type { ClaimedDelivery } from '../store/deliveries.ts';
import { allowedAddresses } from './addresses.ts';
import { post } from './post.ts';
import type { WebhookSettings } from './settings.ts';
import { signatureHeaders } from './sign.ts';

/** The outcome of a delivery. `status`: the receiver's answer, if any. */
type AttemptResult = { ok: boolean; status: number | null; error: string | null };

/**
 * One attempt at a delivery, within its time. Any 2xx is success; any other answer, or none, is a failure. Never
 * throws.
 */
export async function attemptDelivery(
  settings: WebhookSettings,
  target: { url: string; secret: string },
  delivery: ClaimedDelivery,
  stopping: AbortSignal,
): Promise<AttemptResult> {
  const url = new URL(target.url);
  const deadline = AbortSignal.timeout(settings.timeoutMs);
  const signal = AbortSignal.any([deadline, stopping]);
  try {
    const status = await sendTo(settings, url, requestOf(target.secret, delivery), signal);
    const ok = status >= 200 && status < 300;
    return { ok, status, error: ok ? null : `The receiver answered ${status}` };
  } catch (error) {
    if (deadline.aborted)
      return { ok: false, status: null, error: `The receiver did not answer within ${settings.timeoutMs} ms` };
    return { ok: false, status: null, error: messageOf(error) };
  }
}

async function sendTo(
  settings: WebhookSettings,
  url: URL,
  request: { headers: Record<string, string>; body: string },
  signal: AbortSignal,
): Promise<number> {
  // A name server may never answer, and a query can't be cancelled.
  const addresses = await unlessAborted(allowedAddresses(url, settings.allowPrivateAddresses), signal, 'Given up');
  let failure: unknown;
  for (const address of addresses) {
    try {
      return await post(url, address, request, signal);
    } catch (error) {
      signal.throwIfAborted();
      failure = error;
    }
  }
  throw failure;
}

function requestOf(
  secret: string,
  { body, eventId, webhookId }: ClaimedDelivery,
): { headers: Record<string, string>; body: string } {
  const unixSeconds = Math.floor(Date.now() / 1000);
  const signature = signatureHeaders({ secret, body, eventId, webhookId, attemptId: newUuid(), unixSeconds });
  return {
    body,
    headers: {
      'Content-Type': 'application/json',
      'User-Agent': `Atoll-Webhooks/${platformVersion}`,
      Accept: '*/*',
      ...signature,
    },
  };
}
