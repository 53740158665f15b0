import { parseEvents, type ServerSent } from './server-sent.ts';

const retryMs = 2_000;

type Followed = {
  /** Opens a connection that continues after an event; with undefined, at the start of the stream. */
  open: (after: string | undefined) => Promise<Response>;
  signal: AbortSignal;
  /** Called when a connection failed or was cut. Another is tried after a while, unless this throws. */
  onFailure: (error: unknown) => void;
};

/**
 * The events of a stream, over as many connections as it takes, each continuing after the last event of the one before;
 * until `signal` aborts or the stream says `end`, which is the last event. Source: the HTML standard, 9.2.
 */
export async function* followed({ open, signal, onFailure }: Followed): AsyncGenerator<ServerSent> {
  let after: string | undefined;
  while (!signal.aborted) {
    try {
      const { body } = await open(after);
      for await (const message of parseEvents(body)) {
        after = message.id ?? after;
        yield message;
        if (message.event === 'end') return;
      }
    } catch (error) {
      if (signal.aborted) return;
      onFailure(error);
      await new Promise(resolve => setTimeout(resolve, retryMs));
    }
  }
}
