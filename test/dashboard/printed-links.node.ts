import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Sandbox } from 'e2b';
import { noBrowser } from './support/browser.ts';
import { addressesIn, leads, textOf } from './support/printed-links.ts';
import { startSignedIn } from './support/signed-in.ts';
import type { SignedIn } from './support/signed-in.ts';

const require = createRequire(import.meta.url);
const packageFolder = (name: string) => dirname(require.resolve(`${name}/package.json`));

describe('addresses that published clients print', { skip: noBrowser ?? false }, () => {
  let signedIn: SignedIn;

  before(async () => {
    signedIn = await startSignedIn();
  });
  after(() => signedIn?.[Symbol.asyncDispose]());

  test('all that the command line and the SDKs print lead to their pages', async () => {
    const found = ['@e2b/cli', 'e2b'].flatMap(name =>
      addressesIn(textOf(join(packageFolder(name), 'dist'), /\.m?js$/)),
    );
    assert.ok(found.includes('/dashboard?tab=keys') && found.includes('/dashboard/inspect/sandbox/{sandbox}'));
    for (const address of found) assert.ok(leads[address], `${address} is printed, and nobody knows where it leads`);
    const { page, options } = signedIn;
    const sandbox = await Sandbox.create('base', { ...options, timeoutMs: 600_000 });
    for (const [address, heading] of Object.entries(leads)) {
      await page.goto(address.replace('{sandbox}', sandbox.sandboxId));
      await page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor();
    }
  });
});
