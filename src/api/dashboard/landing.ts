import { randomHex } from '../../base/crypto/secret.ts';
import { docsHeaders, pageHeaders } from './headers.ts';

const nonceBytes = 16;

/** Longest origin that the page repeats, in octets; no real address is longer. */
const originMax = 300;

/** The pages to link to. */
type Leads = { dashboard: boolean; docs: boolean };

/**
 * The answer at `/`: a page for browsers, and the same in plain text for clients that accept anything, like curl by
 * default. Null for every other request, including one without an Accept header, which gets the API's own answer.
 */
export function landingPage(request: Request, leads: Leads): Response | null {
  const { pathname, origin } = URL.parse(request.url) ?? { pathname: '', origin: '' };
  if (pathname !== '/' || (request.method !== 'GET' && request.method !== 'HEAD')) return null;
  // The edge says how the client reaches it, because it passes on plain HTTP.
  const whole = request.headers.get('x-forwarded-proto') === 'https' ? origin.replace(/^http:/, 'https:') : origin;
  const own = whole.length > originMax ? '' : whole;
  const accepted = request.headers.get('accept') ?? '';
  if (accepted.includes('text/html')) {
    const nonce = randomHex(nonceBytes);
    return new Response(page(nonce, escaped(own), leads), { headers: { ...pageHeaders(nonce), Vary: 'Accept' } });
  }
  if (!/\*\/\*|text\/plain/.test(accepted) || accepted.includes('json')) return null;
  return new Response(plainText(own, leads), {
    headers: { ...docsHeaders(), 'Cache-Control': 'no-store', Vary: 'Accept' },
  });
}

const plainText = (origin: string, { dashboard, docs }: Leads) =>
  [
    'Atoll: sandboxes for code that nobody has reviewed. This is the address of an installation.',
    '',
    ...(dashboard ? [`Dashboard      ${origin}/dashboard (\`atoll dashboard\` prints a link that signs in)`] : []),
    ...(docs ? [`Documentation  ${origin}/docs/`] : []),
    `REST API       ${origin}/openapi.json`,
    `Health         ${origin}/health`,
    '',
    'For the SDKs, with a key that `atoll key create` or the dashboard makes:',
    `  export E2B_API_KEY=e2b_… E2B_API_URL=${origin} E2B_SANDBOX_URL=${origin}`,
    '',
  ].join('\n');

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
