import { expect, test } from 'bun:test';
import type { Platform } from './platform/platform.ts';
import { readSettings } from './settings/settings.ts';
import { aboutOf, waysTo } from './up.ts';

const serving = (authorityFile: string | null, tlsPort = 443) =>
  ({ port: 3000, tlsPort, authorityFile, apiKey: 'e2b_x', building: [], signInPath: '/d' }) as unknown as Platform;

test('commands of this machine go to its own address, and browsers where the domain leads', () => {
  const ways = (env: Record<string, string>) =>
    waysTo(readSettings({ ATOLL_DATA_DIR: '/srv/atoll', ATOLL_DOMAIN: 'boxes.example', ...env }), serving(null));
  const origin = 'https://boxes.example';
  expect(ways({ ATOLL_HOST: '0.0.0.0' })).toEqual({ url: 'http://127.0.0.1:3000', origin });
  expect(ways({ ATOLL_HOST: '::' })).toEqual({ url: 'http://[::1]:3000', origin });
  expect(ways({})).toEqual({ url: 'http://localhost:3000', origin: 'http://localhost:3000' });
  expect(ways({ ATOLL_HOST: '192.0.2.7' })).toEqual({ url: 'http://192.0.2.7:3000', origin });
});

test('the address with TLS is one that the certificate has', () => {
  const about = (env: Record<string, string>, platform: Platform) => {
    const { tls, dashboard } = aboutOf(readSettings({ ATOLL_DATA_DIR: '/srv/atoll', ...env }), platform);
    return { tls: tls?.url, dashboard };
  };
  const domain = { ATOLL_DOMAIN: 'boxes.example' };
  // The operator's certificate names only the domain, whatever address is listened on.
  for (const ATOLL_HOST of ['127.0.0.1', '0.0.0.0'])
    expect(about({ ...domain, ATOLL_HOST }, serving(null)).tls).toBe('https://boxes.example');
  expect(about({ ...domain, ATOLL_HOST: '0.0.0.0' }, serving(null)).dashboard).toBe('https://boxes.example/d');
  expect(about({ ...domain, ATOLL_HOST: '127.0.0.1' }, serving(null, 3443)).tls).toBe('https://boxes.example:3443');
  // The installation's own authority also makes one for this machine's name.
  expect(about({ ...domain, ATOLL_HOST: '127.0.0.1' }, serving('/ca.pem')).tls).toBe('https://localhost');
  expect(about({ ...domain, ATOLL_HOST: '0.0.0.0' }, serving('/ca.pem')).tls).toBe('https://boxes.example');
});
