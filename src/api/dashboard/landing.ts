import { randomHex } from '../../base/crypto/secret.ts';
import { pageHeaders } from './headers.ts';

const nonceBytes = 16;

/** Octets of an origin that the page repeats; a longer one is nobody's address. */
const originMax = 300;

/** What there is to lead to. */
type Leads = { dashboard: boolean; docs: boolean };

/** The page at `/` for people, who ask for HTML; null for every other request: programs get the API's own answer. */
export function landingPage(request: Request, leads: Leads): Response | null {
  const { pathname, origin } = URL.parse(request.url) ?? { pathname: '', origin: '' };
  if (pathname !== '/' || (request.method !== 'GET' && request.method !== 'HEAD')) return null;
  if (!(request.headers.get('accept') ?? '').includes('text/html')) return null;
  const nonce = randomHex(nonceBytes);
  // The edge says how the client reaches it; it passes plain HTTP on.
  const own = request.headers.get('x-forwarded-proto') === 'https' ? origin.replace(/^http:/, 'https:') : origin;
  return new Response(page(nonce, own.length > originMax ? '' : escaped(own), leads), {
    headers: { ...pageHeaders(nonce), Vary: 'Accept' },
  });
}

const dashboardItem =
  '<a href="/dashboard">Dashboard</a>: <code>atoll dashboard</code> on the machine prints a link that signs in.';
const docsItem = '<a href="/docs/">Documentation</a>, of this very version.';
const apiItem = '<a href="/openapi.json">REST API</a>, as an OpenAPI document.';
const healthItem = '<a href="/health">Health</a>.';

const itemsOf = ({ dashboard, docs }: Leads) =>
  [...(dashboard ? [dashboardItem] : []), ...(docs ? [docsItem] : []), apiItem, healthItem]
    .map(item => `    <li>${item}</li>\n`)
    .join('');

const page = (nonce: string, origin: string, leads: Leads) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Atoll</title>
<style nonce="${nonce}">
  :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
  body { max-width: 42rem; margin: 10vh auto; padding: 0 1rem; }
  pre { overflow-x: auto; padding: 1rem; border: 1px solid; border-radius: .5rem; }
</style>
<main>
  <h1>Atoll</h1>
  <p>Sandboxes for code that nobody has reviewed. This is the address of an installation; programs talk to it by the E2B
  SDKs or by its REST API.</p>
  <ul>
${itemsOf(leads)}  </ul>
  <p>For the SDKs, with a key that <code>atoll key create</code> or the dashboard makes:</p>
  <pre>export E2B_API_KEY=e2b_…
export E2B_API_URL=${origin} E2B_SANDBOX_URL=${origin}</pre>
</main>
</html>
`;

const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
