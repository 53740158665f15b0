import { listHas } from '../../http1/list.ts';
import type { KeptRequestHead, RequestHead } from '../../http1/request-head.ts';
import { agentPort } from '../../protocol/agent.ts';
import { tunnelPath, tunnelProtocol } from '../../protocol/network/tunnel.ts';
import { type Answer, type SandboxPort, sandboxAnswer } from '../answer/answer.ts';
import type { Client } from '../connection/client.ts';
import type { SandboxWay } from '../context.ts';
import { countWaiting } from './count-waiting.ts';
import { Tunnel } from '../tunnel/tunnel.ts';
import { acceptOf } from '../../base/websocket-frames.ts';
import { credentialsOf } from './admit.ts';
import { type Connected, answerToTrouble, connect, giveUp } from './connect.ts';
import { upgradeFor } from './upgrade.ts';

const portPattern = /^[1-9][0-9]{0,4}$/;
const keyPattern = /^[A-Za-z0-9+/]{22}==$/;

/** A request for a connection to a port. */
type TunnelAsked = SandboxPort & { key: string; halfCloses: boolean };

/**
 * For a request to the agent's port that asks for a connection to another port: what it asks for, or why it can't have
 * that; undefined for any other request.
 */
export function tunnelAsked(head: RequestHead, path: string, to: SandboxPort): TunnelAsked | Answer | undefined {
  if (!path.startsWith(tunnelPath)) return undefined;
  const { sandboxId } = to;
  const text = path.slice(tunnelPath.length);
  const port = portPattern.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65_535) return sandboxAnswer(400, `${tunnelPath}PORT: a port is a number from 1 to 65535`, to);
  // The agent's routes for the platform alone are refused by their paths, and a raw connection has no path.
  if (port === agentPort)
    return sandboxAnswer(400, `${tunnelPath}PORT: the agent's port is asked by HTTP, and has no connections`, to);
  const { fields } = head;
  const key = fields.text('sec-websocket-key') ?? '';
  const isWebSocket =
    head.methodIs('GET') && upgradeFor(head, to.port) && fields.list('sec-websocket-version') === '13';
  if (!isWebSocket || !keyPattern.test(key))
    return sandboxAnswer(
      400,
      'A connection to a port is a WebSocket (RFC 6455) whose binary messages are its bytes',
      to,
    );
  return { sandboxId, port, key, halfCloses: listHas(fields.list('sec-websocket-protocol'), tunnelProtocol) };
}

/** Connects a client to a port of a sandbox, or says why not. */
export async function serveTunnel(
  way: SandboxWay,
  client: Client,
  head: KeptRequestHead,
  asked: TunnelAsked,
): Promise<void> {
  const to = { sandboxId: asked.sandboxId, port: asked.port };
  let connected: Connected | Answer;
  try {
    connected = await connect(way, to, way.directory.find(to.sandboxId), {
      credentials: credentialsOf(head.fields),
      repeatable: false,
      fresh: true,
      isProbe: false,
      isTunnel: true,
      protocol: 'http/1.1',
      hasBody: false,
      signal: client.beginRouting(),
    });
  } catch (error) {
    connected = answerToTrouble(way.log, to, error);
  }
  if (!client.isRouting) {
    if ('upstream' in connected) giveUp(connected);
  } else if ('status' in connected) {
    client.refuse(connected, head);
  } else {
    begin(client, connected, asked);
  }
}

function begin(client: Client, { traffic, upstream }: Connected, { key, halfCloses }: TunnelAsked): void {
  const accepted = Buffer.from(
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
      `Sec-WebSocket-Accept: ${acceptOf(key)}\r\n` +
      `${halfCloses ? `Sec-WebSocket-Protocol: ${tunnelProtocol}\r\n` : ''}\r\n`,
    'latin1',
  );
  countWaiting(client, upstream, traffic.teamId);
  client.sendBuffer.write(accepted, 0, accepted.length, false);
  const tunnel = new Tunnel(client, upstream, traffic.requests, halfCloses);
  client.beginUse(tunnel);
  tunnel.begin();
}
