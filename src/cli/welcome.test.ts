import { expect, test } from 'bun:test';
import { welcomeText, type Welcome } from './welcome.ts';

const about: Welcome = { url: 'http://localhost:3000', apiKey: 'e2b_x', apiKeyFile: '/d/api-key', domain: 'localhost:3000', dataDir: '/d', building: [] };

test('one line to paste trusts the installation’s own authority, where it has one', () => {
  const own = welcomeText({ ...about, tls: { url: 'https://localhost:3443', authorityFile: '/d/tls/ca.pem' } });
  expect(own).toContain('Atoll is ready at http://localhost:3000 and https://localhost:3443\n');
  expect(own).toContain('export NODE_EXTRA_CA_CERTS=/d/tls/ca.pem SSL_CERT_FILE=/d/tls/ca.pem\n');
  for (const tls of [undefined, { url: 'https://localhost:3443', authorityFile: null }]) expect(welcomeText({ ...about, tls })).not.toContain('CERT');
});
