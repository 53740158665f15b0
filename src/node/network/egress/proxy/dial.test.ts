import { expect, test } from 'bun:test';
import { AtollError } from '../../../../base/error.ts';
import { dial } from './dial.ts';

test('a SOCKS5 server that has no address counts as the policy’s doing, as which it is logged', async () => {
  const noAddress = () => Promise.reject(new AtollError('not_found', 'proxy.test has no IPv4 address'));
  const options = {
    resolver: { resolve: noAddress, ask: noAddress },
    account: { take: () => () => {}, share: { charge() {} } },
    localAddress: '127.0.0.1',
    egressProxy: { address: 'proxy.test:1080' },
    mayReach: () => true,
    signal: new AbortController().signal,
  };
  await expect(dial({ host: 'example.com', port: 443 }, options as never)).rejects.toMatchObject({
    code: 'forbidden',
    message: 'egressProxy: proxy.test has no IPv4 address',
  });
});
