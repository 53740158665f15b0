import { join } from 'node:path';
import { testPythonCases } from '../support/python-suite.ts';
import { buildMs } from './built.ts';

await testPythonCases({
  folder: join(import.meta.dir, 'python'),
  env: { ATOLL_TEMPLATE_PARTS: 'none' },
  template: { name: 'desktop', buildMs },
  casesTimeoutMs: 10 * 60_000,
  casesLeast: 4,
});
