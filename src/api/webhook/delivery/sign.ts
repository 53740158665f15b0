import { createHash, createHmac } from 'node:crypto';

/**
 * The headers by which a receiver verifies a delivery.
 *
 * `webhook-id`, `webhook-timestamp` (Unix seconds) and `webhook-signature` are those of the Standard Webhooks
 * specification: HMAC-SHA256 over `id.timestamp.body`. `e2b-*` are for receivers that were written for E2B: a plain
 * hash of secret and body, which does not cover the time.
 */
export function signatureHeaders(delivery: {
  secret: string;
  body: string;
  eventId: string;
  webhookId: string;
  attemptId: string;
  unixSeconds: number;
}): Record<string, string> {
  const { secret, body, eventId, webhookId, attemptId, unixSeconds } = delivery;
  const signature = createHmac('sha256', keyOf(secret)).update(`${eventId}.${unixSeconds}.${body}`).digest('base64');
  return {
    'webhook-id': eventId,
    'webhook-timestamp': String(unixSeconds),
    'webhook-signature': `v1,${signature}`,
    'e2b-webhook-id': webhookId,
    'e2b-delivery-id': attemptId,
    'e2b-signature-version': 'v1',
    'e2b-signature': createHash('sha256')
      .update(secret + body)
      .digest('base64url'),
  };
}

/** A secret of the form `whsec_<base64>` stands for its bytes, any other for itself. */
function keyOf(secret: string): Buffer {
  const [, encoded] = /^whsec_([A-Za-z0-9+/]+=*)$/.exec(secret) ?? [];
  return encoded === undefined ? Buffer.from(secret) : Buffer.from(encoded, 'base64');
}
