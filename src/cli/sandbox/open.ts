import type { Sandbox } from 'e2b';
import { AtollError, messageOf } from '../../base/error.ts';
import type { Connect } from '../connection/connection.ts';

/** How long a command may have no answer of a sandbox, milliseconds. */
const requestTimeoutMs = 60_000;

/**
 * Works in a running sandbox by the published client: what happens inside goes the way that programs go. A paused one
 * is resumed. What the client throws fails with `not_found` or `unavailable`.
 */
export async function withSandbox<T>(
  connect: Connect,
  sandboxId: string,
  use: (sandbox: Sandbox) => Promise<T>,
): Promise<T> {
  const { url, apiKey, domain } = connect();
  const client = await import('e2b');
  try {
    const options = { apiKey, apiUrl: url, sandboxUrl: url, domain, requestTimeoutMs };
    const connected = client.Sandbox.connect(sandboxId, options).catch((error: unknown) => {
      // The client speaks of a paused one, whatever was named.
      if (!(error instanceof client.NotFoundError)) throw error;
      throw new AtollError('not_found', `Sandbox "${sandboxId}" was not found`, { cause: error });
    });
    return await use(await connected);
  } catch (error) {
    if (error instanceof client.NotFoundError) throw new AtollError('not_found', messageOf(error), { cause: error });
    if (error instanceof client.SandboxError || error instanceof client.AuthenticationError)
      throw new AtollError('unavailable', messageOf(error), { cause: error });
    throw error;
  }
}
