import type { Browser } from 'playwright-core';
import type { TestPlatform } from '../../support/platform.ts';
import { openWindow } from './browser.ts';
import type { Window } from './browser.ts';

/**
 * Invites somebody to the first team through the page at `host`, and makes them create an account in a separate window,
 * in which they are then signed in.
 */
export async function joinAs(
  { platform, browser, host }: { platform: TestPlatform; browser: Browser; host: Window },
  { name, role }: { name: string; role: string },
): Promise<Window> {
  const { page } = host;
  await page.goto('/dashboard/members');
  await page.getByRole('button', { name: 'Invite' }).click();
  const dialog = page.getByRole('dialog', { name: 'Invite somebody' });
  await dialog.getByLabel('For whom').fill(name);
  await dialog.getByLabel(role).check();
  await dialog.getByRole('button', { name: 'Make the link' }).click();
  const link = (await page.getByRole('dialog').locator('pre').textContent()) ?? '';
  await page.getByRole('button', { name: 'I have kept it' }).click();
  const guest = await openWindow(browser, platform.ready.url);
  await guest.page.goto(link);
  await guest.page.getByLabel('Name').fill(name);
  await guest.page.getByLabel('E-mail').fill(`${role}-${Date.now()}@example.com`);
  await guest.page.getByLabel('New password').fill('correct horse battery');
  await guest.page.getByRole('button', { name: 'Make the account' }).click();
  await guest.page.getByText(`${name} · live`).waitFor();
  // Until then nobody was signed in, and the page received errors that said so.
  guest.complaints.splice(0);
  return guest;
}
