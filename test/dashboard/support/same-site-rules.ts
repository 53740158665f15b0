import assert from 'node:assert/strict';
import { request } from 'node:http';
import { test } from 'node:test';
import type { Sandbox } from 'e2b';
import type { SignedIn } from './signed-in.ts';

/** A document that would run if it belonged to the dashboard's origin. */
const document = '<!doctype html><title>mine</title><script>document.title = "ran"</script>';
const drawing = '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(2)</script></svg>';

type Known = { signedIn: () => SignedIn; sandbox: () => Sandbox };

/** Tests of the rules that follow from sandboxes sharing the dashboard's site, for a suite that has a window open. */
export function testSameSiteRules({ signedIn, sandbox }: Known): void {
  const page = () => signedIn().page;
  /** Sends a request to the platform under a host's name, as a browser does. */
  const askHost = (host: string, path: string, headers: Record<string, string>) =>
    new Promise<{ status: number; body: string }>((resolve, reject) => {
      const { hostname, port } = new URL(signedIn().platform.ready.url);
      const asked = request({ hostname, port, path, headers: { ...headers, host } }, response => {
        let body = '';
        response.setEncoding('utf8').on('data', (text: string) => (body += text));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
      });
      asked.on('error', reject).end();
    });

  test('rule 2: a session counts on the dashboard’s own host alone, and no sandbox ever sees it', async () => {
    await sandbox().files.write(
      '/tmp/echo.cjs',
      `require('http').createServer((request, response) => {
         require('fs').appendFileSync('/tmp/seen', request.url + JSON.stringify(request.headers) + '\\n');
         response.end('from inside');
       }).listen(3000);`,
    );
    await sandbox().commands.run('node /tmp/echo.cjs', { background: true });
    await sandbox().commands.run('until curl -s localhost:3000/ready; do sleep 0.05; done');
    const cookies = await signedIn().window.context.cookies();
    const session = cookies.find(({ name }) => name === '__Host-atoll')?.value ?? '';
    const ours = { cookie: `__Host-atoll=${session}`, 'sec-fetch-site': 'same-origin' };
    const { ready } = signedIn().platform;
    const own = new URL(ready.url).host;
    assert.equal((await askHost(own, '/session', ours)).status, 200);
    // Hosts of sandboxes, of a port and of the agent: neither the API nor the sandbox gets the request.
    for (const port of [3000, 49_983]) {
      const refused = await askHost(`${port}-${sandbox().sandboxId}.${ready.domain}`, '/session', ours);
      assert.equal(refused.status, 400, String(port));
      assert.match(refused.body, /must not carry the dashboard's session/);
    }
    // The same request without the cookie gets in, so it is the cookie that is refused.
    const without = await askHost(`3000-${sandbox().sandboxId}.${ready.domain}`, '/session', {
      'sec-fetch-site': 'same-origin',
      cookie: 'other=1',
    });
    assert.equal(without.body, 'from inside');
    const seen = await sandbox().files.read('/tmp/seen');
    assert.match(seen, /\/session.*other=1/);
    assert.ok(!seen.includes(session));
  });

  test('rule 6: nothing out of a sandbox is a document of the dashboard’s origin', async () => {
    const { complaints } = signedIn().window;
    complaints.splice(0);
    for (const [name, text] of [
      ['page.html', document],
      ['drawing.svg', drawing],
    ] as const) {
      const path = `/home/user/${name}`;
      await sandbox().files.write(path, text);
      await page().goto(`/dashboard/sandboxes/${sandbox().sandboxId}/files?file=${encodeURIComponent(path)}`);
      // Shown as text or as a picture: nothing in it runs, and it is in no frame.
      await page().getByRole('textbox').or(page().getByRole('img', { name })).first().waitFor();
      assert.equal(page().frames().length, 1);
      assert.notEqual(await page().title(), 'ran');
      const [kept] = await Promise.all([
        page().waitForEvent('download'),
        page().getByRole('button', { name: 'Download' }).click(),
      ]);
      assert.equal(kept.suggestedFilename(), name);
      // The saved data has no type that the browser would open.
      assert.match(kept.url(), /^blob:/);
    }
    assert.deepEqual(complaints, []);

    // Requested by its address, the content is never a page: the agent answers only on the sandbox's own host, and
    // through the dashboard's origin it requires headers, which no address has.
    const names = ['page.html', 'drawing.svg'];
    for (const name of names) {
      for (const address of [`/files?path=/home/user/${name}`, `/sandboxes/${sandbox().sandboxId}/files/${name}`]) {
        const response = await page().goto(`${signedIn().platform.ready.url}${address}`);
        assert.equal(response?.status(), 404, address);
        assert.ok(!(await page().content()).includes('mine'), address);
      }
    }
  });
}
