import { expect, test } from 'bun:test';
import { signatureHeaders } from './sign.ts';

test('signatures match the Standard Webhooks specification’s own example', () => {
  const delivery = {
    secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    body: '{"test": 2432232314}',
    eventId: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    webhookId: 'w',
    attemptId: 'a',
    unixSeconds: 1614265330,
  };
  expect(signatureHeaders(delivery)['webhook-signature']).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
  const signed = (change: object) => signatureHeaders({ ...delivery, ...change })['webhook-signature'];
  for (const change of [{ body: '{}' }, { eventId: 'other' }, { unixSeconds: 1 }, { secret: 'a secret of my own' }])
    expect(signed(change)).not.toBe(signed({}));
});
