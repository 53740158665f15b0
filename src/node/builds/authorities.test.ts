import { expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readAuthorities } from './authorities.ts';

const pem = (text: string) => `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----`;

test('authorities come from a file or from all of a folder', () => {
  const dir = mkdtempSync(join(tmpdir(), 'atoll-authorities-'));
  try {
    expect(readAuthorities(join(dir, 'none'))).toBeUndefined();
    expect(readAuthorities(dir)).toBeUndefined();
    writeFileSync(join(dir, 'b.crt'), `a comment\n${pem('b1')}\n${pem('b2')}\n`);
    writeFileSync(join(dir, 'a.pem'), pem('a'));
    writeFileSync(join(dir, 'README'), pem('not asked for'));
    mkdirSync(join(dir, 'more'));
    expect(readAuthorities(dir)).toBe(`${[pem('a'), pem('b1'), pem('b2')].join('\n')}\n`);
    expect(readAuthorities(join(dir, 'b.crt'))).toBe(`${[pem('b1'), pem('b2')].join('\n')}\n`);
    expect(readAuthorities('/dev/null')).toBeUndefined();
  } finally {
    rmSync(dir, { recursive: true });
  }
});
