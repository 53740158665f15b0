// First half of `npm run up`: prepares this checkout until `bin/atoll` can start. Plain Node.js without packages,
// because a fresh clone has none.
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { prepare } from './setup/prepare.mjs';
import { Problem } from './setup/problem.mjs';
import { endAfterWork } from './setup/run.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

endAfterWork();
try {
  // The doctor examines a machine before anything is installed on it: it needs only the runtime.
  await prepare(root, { runtimeOnly: process.argv.includes('--runtime-only') });
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  process.stderr.write(`\nAtoll could not be set up: ${error.message}\n`);
  process.exit(1);
}
