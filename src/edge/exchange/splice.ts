import type { Client, ClientUser } from '../connection/client.ts';
import type { Share } from '../../base/concurrency/share.ts';
import { closeWhenSent } from '../upstream/close-when-sent.ts';
import type { Upstream, UpstreamUser } from '../upstream/upstream.ts';

/**
 * An upgraded connection: bytes pass both ways, a closed direction stays a closed direction, and a reset stays a reset.
 */
export class Splice implements UpstreamUser, ClientUser {
  readonly #client: Client;
  readonly #upstream: Upstream;
  readonly #place: Share;
  #upstreamEnded = false;
  #over = false;

  /** `place`: its share of what all requests share, returned when it ends. */
  constructor(client: Client, upstream: Upstream, place: Share) {
    this.#client = client;
    this.#upstream = upstream;
    this.#place = place;
  }

  clientInput(): boolean {
    const { input, inputAt } = this.#client;
    if (input === null || this.#over) return false;
    this.#touch();
    this.#client.use(input.length);
    if (!this.#upstream.sendBuffer.write(input, inputAt, input.length, false)) this.#client.pause();
    return false;
  }

  upstreamData(bytes: Buffer): void {
    this.#touch();
    if (!this.#client.sendBuffer.write(bytes, 0, bytes.length, false)) this.#upstream.pause();
  }

  upstreamDrained(): void {
    this.#client.resume();
  }

  clientDrained(): void {
    this.#upstream.resume();
  }

  clientEnded(): void {
    this.#upstream.sendBuffer.finish();
  }

  clientGone(): void {
    // Half-closed connections of other protocols may stay half-closed as long as they like.
  }

  upstreamEnded(): void {
    this.#upstreamEnded = true;
    this.#client.sendBuffer.finish();
  }

  upstreamClosed(error: Error | undefined): void {
    if (this.#over) return;
    const isWhole = error === undefined && (this.#upstreamEnded || this.#client.ended);
    this.#leave(isWhole);
    if (isWhole) this.#client.close();
    else this.#client.terminate();
  }

  clientClosed(error: Error | undefined): void {
    if (this.#over) return;
    this.#leave();
    const inOrder = error === undefined && (this.#upstreamEnded || this.#client.ended);
    if (inOrder) closeWhenSent(this.#upstream, this.#client.context.limits.lingerTimeoutMs);
    else this.#upstream.terminate();
  }

  cut(): void {
    if (this.#over) return;
    this.#leave();
    this.#client.terminate();
  }

  #leave(isWhole = false): void {
    this.#over = true;
    this.#upstream.user = null;
    if (isWhole) this.#client.giveBack(this.#place);
    else this.#place.give();
  }

  #touch(): void {
    const { clock, limits } = this.#client.context;
    this.#client.deadlineMs = clock.nowMs + limits.streamIdleTimeoutMs;
  }
}
