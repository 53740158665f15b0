import { agentPort } from '../agent.ts';

/** Destination of a request. `invalid` carries the reason for the caller (answered with 400). */
export type Destination =
  | { readonly kind: 'api' }
  | { readonly kind: 'sandbox'; readonly sandboxId: string; readonly port: number; readonly by: 'host' | 'headers' }
  | { readonly kind: 'invalid'; readonly reason: string };

/**
 * The routing headers of a request; undefined where a header is absent.
 * `E2b-*` is what the published clients send, `Svc-*` the same under neutral names.
 */
export type RoutingHeaders = {
  readonly e2bSandboxId: string | undefined;
  readonly e2bSandboxPort: string | undefined;
  readonly svcSandboxId: string | undefined;
  readonly svcSandboxPort: string | undefined;
};

const api: Destination = { kind: 'api' };
const sandboxIdPattern = /^[a-z0-9]+$/;
const portPattern = /^[0-9]{1,5}$/;
const numberedLabel = /^[0-9]+-/;

/**
 * Decides by host and headers:
 * - `{port}-{sandboxId}.{anything}` (any case, an own `:port` allowed, whatever follows a further `-` ignored) is that
 *   sandbox's port, whatever the headers say;
 * - any other host with a routing header is the sandbox that the headers name. Both headers are needed, save that the
 *   `Svc-` family leaves out the port of the agent;
 * - the rest is the API's.
 *
 * `host` is the value of the Host header, undefined where there is none.
 */
export function destinationOf(host: string | undefined, headers: RoutingHeaders): Destination {
  if (host !== undefined && numberedLabel.test(host)) return destinationOfLabel(host);
  const { e2bSandboxId, e2bSandboxPort, svcSandboxId, svcSandboxPort } = headers;
  if ((e2bSandboxId ?? e2bSandboxPort ?? svcSandboxId ?? svcSandboxPort) === undefined) return api;
  return destinationOfHeaders(headers);
}

/** The first label of a host name without its port, in lower case: `sandbox` of `sandbox.example.com:3000`. */
export function firstLabelOf(host: string): string {
  return /^[^.:]*/.exec(host)?.[0].toLowerCase() ?? '';
}

function destinationOfLabel(host: string): Destination {
  const dot = host.indexOf('.');
  if (dot < 0) return invalid(`the host ${quoted(host)} has no domain after its first label`);
  const [port = '', id = ''] = host.slice(0, dot).split('-');
  return sandboxDestination(id.toLowerCase(), port, 'host');
}

function destinationOfHeaders(headers: RoutingHeaders): Destination {
  const { e2bSandboxId, e2bSandboxPort, svcSandboxId, svcSandboxPort } = headers;
  if (differ(e2bSandboxId, svcSandboxId) || differ(e2bSandboxPort, svcSandboxPort)) {
    return invalid('the E2b- and Svc- routing headers contradict each other');
  }
  const id = e2bSandboxId ?? svcSandboxId;
  if (!id) return invalid('the header E2b-Sandbox-Id (or Svc-Sandbox-Id) is missing');
  const port = e2bSandboxPort ?? svcSandboxPort ?? (svcSandboxId === undefined ? undefined : String(agentPort));
  if (!port) return invalid('the header E2b-Sandbox-Port (or Svc-Sandbox-Port) is missing');
  return sandboxDestination(id, port, 'headers');
}

function sandboxDestination(sandboxId: string, port: string, by: 'host' | 'headers'): Destination {
  if (!sandboxIdPattern.test(sandboxId)) {
    return invalid(`${quoted(sandboxId)} is not a sandbox ID: lowercase letters and digits are`);
  }
  const number = portPattern.test(port) ? Number(port) : 0;
  if (number < 1 || number > 65_535) return invalid(`${quoted(port)} is not a port: use 1 to 65535`);
  return { kind: 'sandbox', sandboxId, port: number, by };
}

function differ(a: string | undefined, b: string | undefined): boolean {
  return a !== undefined && b !== undefined && a !== b;
}

function invalid(reason: string): Destination {
  return { kind: 'invalid', reason };
}

/** At most 80 characters of what the client sent, in quotes. */
function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
