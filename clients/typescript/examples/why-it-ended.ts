// Makes a sandbox, ends it, and reads from the stream of events what happened to it and why.
import { atoll } from '@atoll/client';

const platform = atoll();
const { sandboxID } = await platform.createSandboxV2({ body: { templateID: 'base', timeout: 60 } });

for await (const event of platform.streamEvents({ after: 0 })) {
  if (event.sandboxId !== sandboxID) continue;
  console.log(event.type, JSON.stringify(event.eventData));
  if (event.type === 'sandbox.lifecycle.created') await platform.deleteSandbox({ sandboxID });
  if (event.type === 'sandbox.lifecycle.killed') break;
}
