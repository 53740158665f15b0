import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';

const columns = 6;
const columnPixels = 420;

/** One picture of all pictures of `folder`, each with its name. */
export async function contactSheet(browser: Browser, folder: string, names: readonly string[]): Promise<Buffer> {
  const page = await browser.newPage({ viewport: { width: columns * columnPixels + 40, height: 800 } });
  const figures = await Promise.all(
    names.map(async name => {
      const bytes = await readFile(join(folder, name));
      const source = `data:image/png;base64,${bytes.toString('base64')}`;
      return `<figure><figcaption>${name}</figcaption><img src="${source}"></figure>`;
    }),
  );
  await page.setContent(`<style>
    body { margin: 20px; font: 15px sans-serif; display: grid; grid-template-columns: repeat(${columns}, ${columnPixels - 12}px); gap: 12px }
    figure { margin: 0 } img { max-width: 100%; border: 1px solid #888 }
  </style>${figures.join('')}`);
  const picture = await page.screenshot({ fullPage: true });
  await page.close();
  return picture;
}
