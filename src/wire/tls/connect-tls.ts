import { nodeName } from '../../base/crypto/cluster-names.ts';
import { sha256Hex } from '../../base/crypto/secret.ts';
import type { ControlIdentity, NodePlace } from '../../protocol/cluster.ts';
import type { FarEnds } from './far-ends.ts';
import { TlsChannel } from './tls-channel.ts';

/** Longest time for a connection and its handshake, milliseconds. */
const connectTimeoutMs = 5_000;

/**
 * Connects to a node. It must show a certificate of the cluster's authority, for its own name, that control knows.
 * Undefined: nothing answers there, or another machine does.
 */
export async function openTls(
  place: NodePlace,
  identity: ControlIdentity,
  refused: (reason: string) => void,
  farEnds?: FarEnds,
): Promise<TlsChannel | undefined> {
  const opened = Promise.withResolvers<TlsChannel | undefined>();
  const state: { channel?: TlsChannel } = {};
  const timer = setTimeout(() => opened.resolve(undefined), connectTimeoutMs);
  const connecting = Bun.connect<undefined>({
    hostname: place.host,
    port: place.port,
    tls: {
      cert: identity.certificate,
      key: identity.key,
      ca: identity.authority,
      serverName: nodeName(place.nodeId),
      rejectUnauthorized: true,
    } as Bun.TLSOptions,
    socket: {
      handshake(socket, _, error) {
        const { authorized } = socket as unknown as { authorized: boolean };
        const wrong = authorized
          ? wrongCertificate(place, socket.getPeerCertificate()?.raw)
          : (error?.message ?? 'none');
        if (wrong !== undefined) {
          refused(wrong);
          return void socket.terminate();
        }
        socket.setNoDelay(true);
        const channel = new TlsChannel(socket, { farEnds });
        state.channel = channel;
        opened.resolve(channel);
      },
      data(socket, bytes) {
        if (state.channel) state.channel.received(bytes);
        else socket.terminate();
      },
      drain: () => state.channel?.drained(),
      close() {
        state.channel?.closed();
        opened.resolve(undefined);
      },
      error: socket => void socket.terminate(),
      connectError: () => opened.resolve(undefined),
    },
  }).catch(() => undefined);
  const found = await opened.promise;
  clearTimeout(timer);
  if (!found) void connecting.then(socket => socket?.terminate());
  return found;
}

function wrongCertificate({ certificates }: NodePlace, raw: Uint8Array | undefined): string | undefined {
  if (raw !== undefined && certificates.includes(sha256Hex(raw))) return undefined;
  return 'its certificate is not the one that control gave it last; after a restore of the database it joins anew';
}
