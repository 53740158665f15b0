/** Programs that tell whether a delivery is genuine, by language: a receiver does this first. */
export const verifyCode: Record<string, string> = {
  JavaScript: `import { createHmac, timingSafeEqual } from 'node:crypto';

// body: the bytes as they came, before anything has parsed them.
function isGenuine(secret, headers, body) {
  const isEncoded = secret.startsWith('whsec_');
  const key = isEncoded ? Buffer.from(secret.slice(6), 'base64') : Buffer.from(secret);
  const signed = \`\${headers['webhook-id']}.\${headers['webhook-timestamp']}.\${body}\`;
  const digest = createHmac('sha256', key).update(signed).digest('base64');
  const expected = Buffer.from(\`v1,\${digest}\`);
  const given = Buffer.from(headers['webhook-signature'] ?? '');
  const isFresh = Math.abs(Date.now() / 1000 - Number(headers['webhook-timestamp'])) < 300;
  return isFresh && given.length === expected.length && timingSafeEqual(given, expected);
}`,
  Python: `import base64, hashlib, hmac, time

# body: the text as it came, before anything has parsed it.
def is_genuine(secret, headers, body):
    key = base64.b64decode(secret[6:]) if secret.startswith('whsec_') else secret.encode()
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{body}"
    digest = hmac.new(key, signed.encode(), hashlib.sha256).digest()
    expected = 'v1,' + base64.b64encode(digest).decode()
    is_fresh = abs(time.time() - float(headers['webhook-timestamp'])) < 300
    return is_fresh and hmac.compare_digest(headers.get('webhook-signature', ''), expected)`,
};
