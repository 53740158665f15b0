import type { Sandbox } from 'e2b';
import { AtollError, messageOf } from '../../base/error.ts';
import type { Connect } from '../connection/connection.ts';

/** How long a command may have no answer of a sandbox, milliseconds. */
const requestTimeoutMs = 60_000;

/** How the agent of a sandbox is reached, past the published client. */
export type AgentWay = { url: string; headers: Record<string, string> };

/**
 * Works in a running sandbox by the published client: what happens inside goes the way that programs go. A paused one
 * is resumed. What the client throws fails with `not_found` or `unavailable`.
 */
export async function withSandbox<T>(
  connect: Connect,
  sandboxId: string,
  use: (sandbox: Sandbox, way: AgentWay) => Promise<T>,
): Promise<T> {
  const { url, apiKey, domain } = connect();
  const client = await import('e2b');
  try {
    const options = { apiKey, apiUrl: url, sandboxUrl: url, domain, requestTimeoutMs };
    const connected = reachable(client.Sandbox)
      .connect(sandboxId, options)
      .catch((error: unknown) => {
        // The client speaks of a paused one, whatever was named.
        if (!(error instanceof client.NotFoundError)) throw error;
        throw new AtollError('not_found', `Sandbox "${sandboxId}" was not found`, { cause: error });
      });
    const sandbox = await connected;
    return await use(sandbox, { url, headers: sandbox.agentHeaders() });
  } catch (error) {
    if (error instanceof client.NotFoundError) throw new AtollError('not_found', messageOf(error), { cause: error });
    // The client's errors have no class in common: without credentials, or with a platform that is away or full, it
    // throws some that are no SandboxError.
    const isOfClient = [client.SandboxError, client.AuthenticationError, client.ServiceBusyError].some(
      kind => error instanceof kind,
    );
    // It reads what it takes for an answer of the API.
    if (error instanceof SyntaxError || (error instanceof TypeError && !URL.canParse(url)))
      throw new AtollError('unavailable', `What answers at ${url} is no Atoll: ${messageOf(error)}`, { cause: error });
    throw isOfClient ? new AtollError('unavailable', messageOf(error), { cause: error }) : error;
  }
}

/** The published client, as one that says what its requests to an agent say of themselves. */
function reachable(Client: typeof Sandbox) {
  return class extends Client {
    agentHeaders(): Record<string, string> {
      return {
        'E2b-Sandbox-Id': this.sandboxId,
        'E2b-Sandbox-Port': String(this.envdPort),
        ...(this.envdAccessToken !== undefined && { 'X-Access-Token': this.envdAccessToken }),
      };
    }
  };
}
