import { join } from 'node:path';
import { testPythonCases } from '../support/python-suite.ts';

const folder = join(import.meta.dir, 'python');

await testPythonCases({
  folder,
  requirements: join(folder, 'requirements.txt'),
  env: { ATOLL_TEMPLATES: 'code-interpreter-v1', ATOLL_TEMPLATE_PARTS: 'none' },
  // The first build on a machine downloads packages: a busy machine takes a quarter of an hour.
  template: { name: 'code-interpreter-v1', buildMs: 20 * 60_000 },
  casesTimeoutMs: 5 * 60_000,
  casesLeast: 3,
});
