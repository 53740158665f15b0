import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Sandbox } from 'e2b';
import type { Page } from 'playwright-core';
import { noBrowser, seriousFindings } from './support/browser.ts';
import { shareSignedIn } from './support/signed-in.ts';
import type { SignedIn } from './support/signed-in.ts';

/** A text that would run if text of a build became markup or script. */
const hostile = '<img src=x onerror=alert(1)>';

describe('templates in the dashboard', { skip: noBrowser ?? false }, () => {
  const begin = shareSignedIn();
  let signedIn: SignedIn;
  let page: Page;

  /** Builds the template `hello` from the form's input, and waits for the end of the build. */
  const build = async (dockerfile: string, end: 'ready' | 'error') => {
    await page.goto('/dashboard/templates?build=hello');
    const sheet = page.getByRole('dialog', { name: 'Build from a Dockerfile' });
    await sheet.getByRole('textbox', { name: 'Dockerfile' }).fill(dockerfile);
    await sheet.getByLabel('CPUs').fill('1');
    await sheet.getByLabel('Memory, MiB').fill('512');
    await sheet.getByLabel(/^Start command/).fill('sleep 1000');
    assert.deepEqual(await seriousFindings(page), []);
    await sheet.getByRole('button', { name: 'Build', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Build' }).waitFor();
    await page.getByText(end, { exact: true }).waitFor({ timeout: 60_000 });
    return new URL(page.url()).pathname.split('/').at(-1)?.slice(0, 8) ?? '';
  };

  before(async () => {
    signedIn = await begin();
    page = signedIn.page;
  });
  after(() => signedIn?.[Symbol.asyncDispose]());

  test('a Dockerfile is built in the page, and a tag goes back to what it named before', async () => {
    const first = await build(`FROM e2bdev/base\nRUN echo '${hostile}' > /etc/hello\n`, 'ready');
    await page.getByRole('log').getByText(hostile).first().waitFor();
    const second = await build('FROM e2bdev/base\nRUN echo second > /etc/hello\n', 'ready');
    await page.getByRole('link', { name: 'its template' }).click();
    const row = page.getByRole('region', { name: 'Tags' }).getByRole('row').filter({ hasText: 'default' });
    await row.getByRole('link', { name: second }).waitFor();
    await row.getByRole('button', { name: 'Roll back default' }).click();
    await row.getByRole('link', { name: first }).waitFor();

    // The lowest layer is the base's, and the base's page says so too.
    const lowest = page.getByRole('group', { name: 'Layers' }).getByRole('row').nth(1);
    await lowest.getByText(/\d+(\.\d)? (Ki|Mi)B/).waitFor();
    await lowest.getByRole('link', { name: 'base' }).waitFor();
    assert.deepEqual(await seriousFindings(page), []);

    // A rebuild starts from what it has, and without a Dockerfile that was never its own.
    await page.getByRole('link', { name: 'Build again' }).click();
    const again = page.getByRole('dialog', { name: 'Build from a Dockerfile' });
    assert.equal(await again.getByLabel('CPUs').inputValue(), '1');
    assert.equal(await again.getByLabel('Memory, MiB').inputValue(), '512');
    assert.equal(await again.getByLabel(/^Start command/).inputValue(), 'sleep 1000');
    assert.equal(await again.getByRole('textbox', { name: 'Dockerfile' }).inputValue(), '');
    assert.deepEqual(await seriousFindings(page), []);
    await page.goBack();

    const sandbox = await Sandbox.create('hello', signedIn.options);
    assert.equal((await sandbox.files.read('/etc/hello')).trim(), hostile);

    await row.getByRole('button', { name: 'History of default' }).click();
    const history = page.getByRole('dialog', { name: 'What default has named' });
    assert.deepEqual(await seriousFindings(page), []);
    await history.getByRole('button', { name: `Point here: ${second}` }).click();
    await history.getByRole('row').filter({ hasText: second }).getByText('now').waitFor();
    await history.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('textbox', { name: 'Tag' }).fill('stable');
    await page.getByRole('button', { name: 'Assign' }).click();
    await page.getByRole('button', { name: 'Remove stable' }).click();
    await page.getByRole('button', { name: 'Remove stable' }).waitFor({ state: 'detached' });
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('what can not be built says why: the line of a Dockerfile, the step of a build', async () => {
    await page.goto('/dashboard/templates?build=broken');
    await page.getByRole('textbox', { name: 'Dockerfile' }).fill('FROM e2bdev/base\nNONSENSE here\n');
    await page.getByRole('button', { name: 'Build', exact: true }).click();
    await page.getByRole('status').getByText('NONSENSE').waitFor();
    assert.deepEqual(
      signedIn.window.complaints.filter(text => !text.includes('400')),
      [],
    );
    signedIn.window.complaints.splice(0);
    await build('FROM e2bdev/base\nRUN exit 3\n', 'error');
    await page.getByRole('alert').getByText('Step').waitFor();
    assert.deepEqual(signedIn.window.complaints, []);
  });
});
