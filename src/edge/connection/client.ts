import type { Destination } from '../../protocol/network/hosts.ts';
import type { Answer } from '../answer/answer.ts';
import type { Origin } from '../clients/client-table.ts';
import type { ConnectionContext } from '../context.ts';
import { listHas } from '../../http1/list.ts';
import type { Share } from '../../base/concurrency/share.ts';
import type { BodyReader } from '../../http1/body-reader.ts';
import type { RequestHead } from '../../http1/request-head.ts';
import type { SendBuffer } from '../send-buffer.ts';

/** The current user of a client's connection: a request in flight, or an upgraded connection. */
export type ClientUser = {
  /** Input has arrived. Uses the part that belongs to it; false: the rest must wait. */
  clientInput(): boolean;
  /** Everything that waited to be sent to the client was sent. */
  clientDrained(): void;
  /** The client closed its sending side. */
  clientEnded(): void;
  /** The client closed its sending side and has taken nothing since: it is most likely gone. */
  clientGone(): void;
  /** The connection is gone; `error` if it did not end in order. */
  clientClosed(error: Error | undefined): void;
};

/** A client's connection as seen by what serves its requests. */
export type Client = {
  readonly context: ConnectionContext;
  readonly sendBuffer: SendBuffer;
  /** It came over TLS. */
  readonly secure: boolean;
  readonly address: string;
  /** The request is a gRPC call over HTTP/2. */
  readonly isGrpc: boolean;
  /** Everybody behind the client's address. */
  readonly origin: Origin;
  /** The forwarded fields that all its requests share, up to the name of the host field. */
  readonly forwardedLines: Buffer;
  /** Where the current request's body ends. */
  readonly body: BodyReader;
  /** Bytes received but not yet used, from `inputAt` on. */
  readonly input: Buffer | null;
  readonly inputAt: number;
  /** When the connection ends if nothing happens, on the edge's clock. */
  deadlineMs: number;
  readonly ended: boolean;
  /**
   * The host of the last request routed by its host, and where it led: requests of one connection mostly share a host.
   */
  lastHost: string | null;
  lastDestination: Destination | null;

  /** What waits on this connection counts for this group until the next request. */
  countFor(group: string): void;
  /** Marks the input up to `position` as used. */
  use(position: number): void;
  pause(): void;
  resume(): void;

  /** Answers the current request itself, without an upstream. `head` is the request's head. */
  refuse(answer: Answer, head: RequestHead): void;
  /** Answers a request that can't be read, then closes. */
  refuseHead(status: number, reason: string): void;
  /** The upstream of the current request is being found. The signal aborts if the client goes away. */
  beginRouting(): AbortSignal;
  /** Whether the upstream is still being found: false once the client is gone. */
  readonly isRouting: boolean;
  beginUse(user: ClientUser): void;
  /**
   * Returns the current request's share of what all requests share. Called when the response is whole; takes effect
   * once none of the response is held here any more.
   */
  giveBack(place: Share): void;
  /** The request is over, and its response is in the sendBuffer. */
  endUse(close: boolean): void;
  /** The response ended before its request: the rest of the request is skipped. */
  skipRequest(close: boolean): void;
  /** Calls the user's `clientGone` if the client takes no byte of the response for a while. */
  watchHalfClosed(): void;
  /** Resets the connection (RST), so that what was sent so far can't pass for the whole. */
  terminate(): void;
  /** Closes in order once everything is sent. */
  close(): void;
};

/** True if the connection can carry no further request after the one with `head`. */
export function closesAfter(head: RequestHead): boolean {
  return head.minorVersion === 0 || listHas(head.fields.list('connection'), 'close');
}
