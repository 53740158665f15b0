import { expect, test } from 'bun:test';
import { welcomeText, type Welcome } from './welcome.ts';

const about: Welcome = {
  url: 'http://localhost:3000',
  apiKey: 'e2b_x',
  apiKeyFile: '/d/api-key',
  domain: 'localhost:3000',
  dataDir: '/d',
  building: [],
  dashboard: 'http://localhost:3000/dashboard/signin#c',
};

test("one line to paste trusts the installation's own authority, where it has one", () => {
  const local = { url: 'https://localhost:3443', domain: 'localhost:3443' };
  const own = welcomeText({ ...about, tls: { ...local, authorityFile: '/d/tls/ca.pem' } });
  expect(own).toContain('Atoll is ready at http://localhost:3000 and https://localhost:3443\n');
  expect(own).toContain('export NODE_EXTRA_CA_CERTS=/d/tls/ca.pem SSL_CERT_FILE=/d/tls/ca.pem\n');
  for (const tls of [undefined, { ...local, authorityFile: null }])
    expect(welcomeText({ ...about, tls })).not.toContain('CERT');
});

test('the domain is that of TLS where a certificate can be for hosts of it', () => {
  const domainIn = (domain: string) => {
    const tls = { url: 'https://localhost:3443', domain, authorityFile: '/d/tls/ca.pem' };
    return /E2B_DOMAIN=(\S+)/.exec(welcomeText({ ...about, tls }))?.[1];
  };
  expect(domainIn('atoll.localhost:3443')).toBe('atoll.localhost:3443');
  expect(domainIn('localhost:3443')).toBe('localhost:3000');
});

test('clients of other machines are told of the domain where there is one', () => {
  const tls = { url: 'https://boxes.example', domain: 'boxes.example', authorityFile: null };
  const text = welcomeText({ ...about, tls });
  expect(text).toContain('lead to this one:\n  export E2B_API_KEY=e2b_x\n  export E2B_API_URL=https://boxes.example\n');
  expect(text).toContain('previews  http://PORT-SANDBOX_ID.localhost:3000 and https://PORT-SANDBOX_ID.boxes.example\n');
  // The shared sandbox address would take the sandboxes' own hosts from them.
  expect(text.split('lead to this one:')[1]).not.toContain('E2B_SANDBOX_URL');
  for (const domain of ['localhost:3443', 'a.localhost'])
    expect(welcomeText({ ...about, tls: { ...tls, domain } })).not.toContain('lead to this one');
});
