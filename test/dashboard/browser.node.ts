import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { noBrowser, startBrowser } from './support/browser.ts';

/** How many connections a browser opens to one host: further requests wait, and the browser may give them up. */
const connections = 6;
const changes = 10;

/** Makes a link with an address and removes it again, as the start and the end of a sandbox do. */
function changeNetwork(): void {
  const link = `at${process.pid}`;
  const ip = (...args: string[]) => execFileSync('ip', args);
  ip('link', 'add', link, 'type', 'veth', 'peer', 'name', `${link}p`);
  try {
    ip('link', 'set', `${link}p`, 'up');
    ip('link', 'set', link, 'up');
    ip('address', 'add', '192.0.2.77/32', 'dev', link);
  } finally {
    ip('link', 'delete', link);
  }
}

/** Says how many of its requests were answered. The links change while as many requests as possible are in flight. */
const page = `<link rel="icon" href="data:,"><p></p><script>
  const all = Array.from({ length: ${2 * connections} }, (_, n) => fetch('/' + n).then(answer => answer.ok, () => false));
  Promise.all(all).then(them => (document.querySelector('p').textContent = them.filter(Boolean).length));
</script>`;

test(
  'links of sandboxes come and go while a page is loaded, and the browser loads all of it',
  { skip: noBrowser ?? false },
  async () => {
    const waiting: ServerResponse[] = [];
    const server = createServer((request, response) => {
      if (request.url === '/') return void response.writeHead(200, { 'Content-Type': 'text/html' }).end(page);
      waiting.push(response);
      if (waiting.length < connections) return;
      for (let left = changes; left > 0; left--) changeNetwork();
      for (const one of waiting.splice(0)) one.end();
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const browser = await startBrowser();
    try {
      const shown = await browser.newPage();
      await shown.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
      await shown.locator('p:not(:empty)').waitFor();
      assert.equal(await shown.locator('p').textContent(), String(2 * connections));
    } finally {
      await browser.close();
      server.close();
    }
  },
);
