import { join } from 'node:path';
import { testPythonCases } from '../support/python-suite.ts';

// PyPI's code interpreter, both interfaces, in the environment that a start prints.

await testPythonCases({
  folder: join(import.meta.dir, 'python'),
  // Its other parts are the other test's: `none` is the name of no part.
  env: { ATOLL_TEMPLATES: 'code-interpreter-v1', ATOLL_TEMPLATE_PARTS: 'none' },
  // The first build of a machine downloads packages.
  template: { name: 'code-interpreter-v1', buildMs: 10 * 60_000 },
  casesTimeoutMs: 5 * 60_000,
  casesLeast: 11,
});
