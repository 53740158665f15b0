import { agentPort } from '../../protocol/agent.ts';
import { listHas } from '../../http1/list.ts';
import type { RequestHead } from '../../http1/request-head.ts';

/**
 * Whether a request may switch protocols. Our own servers accept only WebSocket: behind another protocol (HTTP/2 over
 * cleartext) they would get requests that the edge never saw. A request with a body can't switch.
 */
export function upgradeFor(head: RequestHead, port: number): boolean {
  const { fields } = head;
  if (!fields.has('upgrade') || head.minorVersion === 0 || head.framing.kind !== 'none') return false;
  if (!listHas(fields.list('connection'), 'upgrade')) return false;
  return port !== agentPort || fields.list('upgrade')?.toLowerCase() === 'websocket';
}
