import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startPlatform } from '../support/platform.ts';
import { startIdentityProvider } from '../support/identity-provider/identity-provider.ts';
import { noBrowser, openWindow, seriousFindings, startBrowser } from '../dashboard/support/browser.ts';

/** A free port: the provider must know where the dashboard is before the dashboard starts. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise(resolve => server.close(resolve));
  return port;
}

test('somebody signs in at an identity provider, by its button', { skip: noBrowser ?? false }, async () => {
  const port = await freePort();
  const folder = await mkdtemp(join(tmpdir(), 'atoll-oidc-'));
  const people = { ada: { name: 'Ada', email: 'ada@example.com', email_verified: true } };
  await using provider = await startIdentityProvider(`http://localhost:${port}/dashboard/signin`, people);
  const file = join(folder, 'oidc.json');
  const rules = { emailDomains: ['example.com'], newcomers: { team: 'default', role: 'viewer' } };
  await writeFile(file, JSON.stringify({ ...provider.file, ...rules }), { mode: 0o600 });
  await using platform = await startPlatform({ ATOLL_PORT: String(port), ATOLL_OIDC_FILE: file });
  await using browser = { value: await startBrowser(), [Symbol.asyncDispose]: () => browser.value.close() };
  const { page, complaints } = await openWindow(browser.value, platform.ready.url);
  // The provider's own pages load what they like, including a font from elsewhere: here it arrives at once, and empty.
  const known = [platform.ready.url, provider.issuer];
  await page.route(
    url => !known.some(origin => url.href.startsWith(origin)),
    route => route.fulfill({ body: '' }),
  );

  const signInThere = async () => {
    await page.getByRole('button', { name: 'Continue with Example' }).click();
    await page.locator('input[name=login]').fill('ada');
    await page.locator('input[name=password]').fill('any');
    await page.getByRole('button', { name: 'Sign-in' }).click();
    const consent = page.getByRole('button', { name: 'Continue' });
    await consent.waitFor();
    complaints.splice(0);
    await consent.click();
  };
  await page.goto('/dashboard/signin');
  await page.getByRole('button', { name: 'Continue with Example' }).waitFor();
  assert.deepEqual(complaints.slice(), []);
  await signInThere();
  await page.getByRole('heading', { level: 1, name: 'Sandboxes', exact: true }).waitFor();
  assert.ok(!page.url().includes('state='));
  await page.getByText('Ada').first().waitFor();

  // A session that must prove its identity does so there, and the user returns to the page they were on.
  const refused = { code: 403, message: 'a proof is needed', error_code: 'proof_needed' };
  await page.route('**/session/password', route => route.fulfill({ status: 403, json: refused }));
  await page.goto('/dashboard/account');
  await page.getByLabel(/^New password/).fill('correct horse battery');
  await page.getByRole('button', { name: 'Set the password' }).click();
  const proof = page.getByRole('dialog', { name: 'Is it you?' });
  await proof.getByLabel('An access token of yours').waitFor();
  assert.deepEqual(await seriousFindings(page), []);
  await proof.getByRole('button', { name: 'Use a sign-in link' }).click();
  await proof.getByLabel('A new sign-in link').waitFor();
  await page.context().clearCookies({ domain: new URL(provider.issuer).hostname, name: /^_/ });
  await proof.getByRole('button', { name: 'Continue with Example' }).waitFor();
  await signInThere();
  await page.getByRole('heading', { level: 1, name: 'Ada' }).waitFor();
  assert.equal(new URL(page.url()).pathname, '/dashboard/account');

  await page.context().clearCookies();
  await page.goto('/dashboard/events?kind=build');
  await signInThere();
  await page.getByRole('heading', { level: 1, name: 'Events', exact: true }).waitFor();
  assert.equal(new URL(page.url()).search, '?kind=build');
  complaints.splice(0);

  // One window's answer is useless in another: it can't be handed over.
  const answer = await fetch(`${platform.ready.url}/session/provider`);
  assert.deepEqual(await answer.json(), { name: 'Example' });
  const other = await openWindow(browser.value, platform.ready.url);
  await other.page.goto('/dashboard/signin?code=stolen&state=stolen');
  await other.page.getByRole('alert').getByText('This sign-in was begun elsewhere').waitFor();
  assert.deepEqual(
    complaints.filter(text => !text.includes(provider.issuer)),
    [],
  );
  await rm(folder, { recursive: true, force: true });
});
