import { join } from 'node:path';
import { testPythonCases } from '../support/python-suite.ts';

// PyPI's code interpreter, both interfaces, in the environment that a start prints.

await testPythonCases({
  folder: join(import.meta.dir, 'python'),
  // What the other test has built unless it is told otherwise, so that the machine's cache has it for the second.
  env: { ATOLL_TEMPLATES: 'code-interpreter-v1', ATOLL_TEMPLATE_PARTS: 'r,java' },
  // The first build of a machine downloads packages: a busy one takes a quarter of an hour.
  template: { name: 'code-interpreter-v1', buildMs: 20 * 60_000 },
  casesTimeoutMs: 8 * 60_000,
  casesLeast: 19,
});
