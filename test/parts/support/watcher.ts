import { join } from 'node:path';
import { silentLog } from '../../../src/base/telemetry/log.ts';
import { startPart } from '../../../src/supervisor/part.ts';
import { commandOf } from '../../../src/supervisor/program.ts';

// A supervisor of one part, to be killed.

const part = startPart<{ pid: number }>({
  name: 'api',
  command: () => commandOf([process.execPath, join(import.meta.dir, 'little-part.ts')], { rights: 'to drop' }),
  environment: {},
  settings: () => ({ doing: 'serve' }),
  stallLooksMax: 10,
  log: silentLog,
  readAbout: about => about as { pid: number },
  onPhase() {},
  onAsk: async () => {},
  onReady() {},
  onRestart() {},
  onGivenUp() {},
});
process.stdout.write(`${(await part.ready).pid}\n`);
