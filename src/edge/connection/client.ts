import type { Destination } from '../../protocol/network/hosts.ts';
import type { Answer } from '../answer/answer.ts';
import type { Origin } from '../clients/client-table.ts';
import type { ConnectionContext } from '../context.ts';
import { listHas } from '../../http1/list.ts';
import type { Share } from '../../base/concurrency/share.ts';
import type { BodyReader } from '../../http1/body-reader.ts';
import type { RequestHead } from '../../http1/request-head.ts';
import type { SendBuffer } from '../send-buffer.ts';

/** Who uses a client's connection at the moment (a request on its way, or an upgraded connection). */
export type ClientUser = {
  /** There is input. Uses what is its own; false: the rest has to wait. */
  clientInput(): boolean;
  /** What waited to be sent to the client is sent. */
  clientDrained(): void;
  /** The client closed its sending side. */
  clientEnded(): void;
  /** The client closed its sending side and has taken nothing since: most likely it is gone. */
  clientGone(): void;
  /** The connection is gone; `error` where it did not end in order. */
  clientClosed(error: Error | undefined): void;
};

/** A client's connection as seen by what serves its requests. */
export type Client = {
  readonly context: ConnectionContext;
  readonly sendBuffer: SendBuffer;
  /** It came over TLS. */
  readonly secure: boolean;
  readonly address: string;
  /** Its request is a call of gRPC, over HTTP/2. */
  readonly isGrpc: boolean;
  /** Everybody behind that address. */
  readonly origin: Origin;
  /** The forwarded fields that all its requests share, up to the name of the host field. */
  readonly forwardedLines: Buffer;
  /** Where the current request's body ends. */
  readonly body: BodyReader;
  /** Bytes received and not yet used, from `inputAt` on. */
  readonly input: Buffer | null;
  readonly inputAt: number;
  /** When the connection is ended if nothing happens, on the edge's clock. */
  deadlineMs: number;
  readonly ended: boolean;
  /** The host of the last request that was routed by it, and where to: a connection's requests mostly have the same. */
  lastHost: string | null;
  lastDestination: Destination | null;

  /** Says that the input up to `position` is used. */
  use(position: number): void;
  pause(): void;
  resume(): void;

  /** Answers the current request, of which `head` is the head, without an upstream. */
  refuse(answer: Answer, head: RequestHead): void;
  /** Answers a request that can't be read, and closes. */
  refuseHead(status: number, reason: string): void;
  /** The upstream of the current request is being found. The signal aborts when the client is gone. */
  beginRouting(): AbortSignal;
  /** Whether it still is: false if the client is gone meanwhile. */
  readonly isRouting: boolean;
  beginUse(user: ClientUser): void;
  /**
   * Gives back what the current request has taken of what all share, where its response is whole: once nothing of that
   * is held here any more.
   */
  giveBack(place: Share): void;
  /** The request is over and its response with the sendBuffer. */
  endUse(close: boolean): void;
  /** The response is over before its request: what is left of that is skipped. */
  skipRequest(close: boolean): void;
  /** Tells the user with `clientGone` if no byte of the response is taken for a while. */
  watchHalfClosed(): void;
  /** Resets the connection (RST): what was sent so far can't be taken for the whole. */
  terminate(): void;
  /** Closes in order once everything is sent. */
  close(): void;
};

/** True where a connection can carry no further request after the one with `head`. */
export function closesAfter(head: RequestHead): boolean {
  return head.minorVersion === 0 || listHas(head.fields.list('connection'), 'close');
}
