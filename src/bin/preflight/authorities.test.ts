import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { requireAuthorities } from './authorities.ts';

test('authorities that were named are there, and as PEM', () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-build-ca-'));
  try {
    const file = join(folder, 'proxy.crt');
    const check = (buildAuthorities: string) => () => requireAuthorities({ buildAuthorities });
    for (const path of [folder, '/dev/null', '/usr/local/share/ca-certificates']) expect(check(path)).not.toThrow();
    expect(check(file)).toThrow(`ATOLL_BUILD_CA is ${file}, which is not there: set it to a PEM file`);
    // In DER, as some authorities hand them out.
    writeFileSync(file, new Uint8Array([0x30, 0x82, 0x03]));
    expect(check(file)).toThrow('which has no certificate as PEM');
    writeFileSync(file, '-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n');
    expect(check(file)).not.toThrow();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
