import { messageOf } from '../../base/error.ts';
import type { ExitsPlace, NodeProtocol } from '../../protocol/node.ts';
import type { App } from '../app/context.ts';
import { noteExit } from './adoption.ts';

/** How long a node is asked to wait for the end of a sandbox before it answers that there was none. */
const waitMs = 30_000;
/** A node that does not answer is asked again after this. */
const retryMs = 250;

/** Takes note of the sandboxes of a node that end by themselves, in their order, until it is stopped. */
export function followExits(app: App, node: NodeProtocol): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const done = follow(app, node, stopping.signal);
  return {
    async stop() {
      stopping.abort();
      await done;
    },
  };
}

async function follow(app: App, node: NodeProtocol, signal: AbortSignal): Promise<void> {
  let place: ExitsPlace | null = null;
  while (!signal.aborted) {
    try {
      const { exits, next } = await node.exits(place, waitMs, signal);
      for (const exit of exits) {
        // One that can't be noted must not hold the others back: adoption finds that its sandbox is gone.
        await noteExit(app, exit).catch((error: unknown) => app.log.error('the end of a sandbox was not noted', { ...exit, error: messageOf(error) }));
      }
      place = next;
    } catch (error) {
      if (signal.aborted) return;
      app.log.warn('the node does not say which sandboxes have ended; it is asked again', { error: messageOf(error) });
      await Bun.sleep(retryMs);
    }
  }
}
