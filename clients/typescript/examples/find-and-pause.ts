// Pauses every sandbox of one project, without its memory where that can't be kept, and says what each pause has kept.
import { atoll, AtollFailure } from '@atoll/client';

const platform = atoll();
const project = process.argv[2] ?? 'demo';

for (const { sandboxID } of await platform.listSandboxesV2({ state: ['running'], metadata: `project=${project}` })) {
  await platform.pauseSandbox({ sandboxID, body: { memory: true } }).catch((error: unknown) => {
    if (!(error instanceof AtollFailure) || error.code !== 'sandbox_memory_unavailable') throw error;
    return platform.pauseSandbox({ sandboxID, body: { memory: false } });
  });
  const { state, pauseMode } = await platform.getSandbox({ sandboxID });
  console.log(`${sandboxID} is ${state}: ${pauseMode === 'full' ? 'files and memory' : 'files alone'}`);
}
