import { join } from 'node:path';
import { testPythonCases } from '../support/python-suite.ts';

// PyPI's code interpreter, with both interfaces, in the environment that a start prints.

await testPythonCases({
  folder: join(import.meta.dir, 'python'),
  // The same parts as the other test builds by default, so that the second test finds them in the machine's cache.
  env: { ATOLL_TEMPLATES: 'code-interpreter-v1', ATOLL_TEMPLATE_PARTS: 'r,java' },
  // The first build on a machine downloads packages: a busy machine takes a quarter of an hour.
  template: { name: 'code-interpreter-v1', buildMs: 20 * 60_000 },
  casesTimeoutMs: 8 * 60_000,
  casesLeast: 19,
});
