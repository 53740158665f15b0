import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { testPythonCases } from '../support/python-suite.ts';

const python = await testPythonCases({
  folder: join(import.meta.dir, 'python'),
  casesTimeoutMs: 240_000,
  casesLeast: 12,
});

// Where the packages are available, skipping the Python SDK would be a gap that nobody sees.
test('the Python SDK is tested in continuous integration', () => {
  if (process.env['CI'] !== undefined) expect(python).toHaveProperty('program');
});
