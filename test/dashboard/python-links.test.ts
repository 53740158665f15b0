import { expect } from 'bun:test';
import { dirname, join } from 'node:path';
import { pythonTimeoutMs, pythonWithSdk } from '../support/python.ts';
import { testUnless } from '../support/skip.ts';
import { addressesIn, leads, textOf } from './support/printed-links.ts';

const python = await pythonWithSdk();

testUnless('missing' in python ? python.missing : undefined)(
  'the Python SDK prints addresses that windows.node.ts follows to their pages, and no others',
  () => {
    const folder = 'program' in python ? join(dirname(python.program), '..', 'lib') : '';
    const found = new Set(addressesIn(textOf(folder, /e2b[^/]*\/.*\.py$/)));
    expect([...found]).toEqual(['/dashboard?tab=keys']);
    for (const address of found) expect(Object.keys(leads)).toContain(address);
  },
  pythonTimeoutMs,
);
