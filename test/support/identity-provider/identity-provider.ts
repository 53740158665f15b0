import { once } from 'node:events';
import { join } from 'node:path';
import { start, textOf, waitFor } from '../process.ts';

/** The provider's claims about people, by the name with which they sign in there. */
type People = Record<string, { name?: string; email?: string; email_verified?: boolean }>;

/** A real OpenID provider in a separate process. Disposing of it ends it. */
export async function startIdentityProvider(redirectUri: string, people: People) {
  const argument = JSON.stringify({ redirectUri, people });
  const child = start(['node', join(import.meta.dirname, 'provider.mjs'), argument], {});
  const output = textOf(child, 'stdout');
  const issuer = await waitFor('the identity provider', () => /^(\S+)\n/.exec(output())?.[1]);
  return {
    issuer,
    file: { issuer, clientId: 'atoll', clientSecret: 'a secret of the tests: %+', name: 'Example' },
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit');
      child.kill();
      await ended;
    },
  };
}

/** Signs in at the provider's pages as a browser does, and answers where that leads in the end. */
export async function signInThere(url: string, login: string, redirectUri: string): Promise<URL> {
  const cookies = new Map<string, string>();
  let [next, body] = [url, null as URLSearchParams | null];
  for (let step = 0; step < 20; step++) {
    const response = await fetch(next, {
      method: body ? 'POST' : 'GET',
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(body && { body }),
    });
    for (const line of response.headers.getSetCookie()) {
      const [name = '', value = ''] = line.split(';')[0]?.split(/=(.*)/s) ?? [];
      cookies.set(name, value);
    }
    const location = response.headers.get('location');
    const text = await response.text();
    const prompt = /name="prompt" value="(\w+)"/.exec(text)?.[1];
    if (location !== null) {
      next = new URL(location, next).href;
      if (next.startsWith(redirectUri)) return new URL(next);
      body = null;
    } else if (prompt !== undefined) {
      next = new URL(/action="([^"]+)"/.exec(text)?.[1] ?? '', next).href;
      body = new URLSearchParams({ prompt, login, password: 'any' });
    } else throw new Error(`the provider answered ${response.status}: ${text.slice(0, 500)}`);
  }
  throw new Error('the provider leads nowhere');
}
