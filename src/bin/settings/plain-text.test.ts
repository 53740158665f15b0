import { expect, test } from 'bun:test';
import { plainTextWarning } from './plain-text.ts';
import { readSettings } from './settings.ts';

const warning = (env: Record<string, string>) =>
  plainTextWarning(readSettings({ ATOLL_DATA_DIR: '/srv/atoll', ...env }));

test('serving other machines without TLS gives a warning with a fitting remedy', () => {
  expect(warning({ ATOLL_HOST: '0.0.0.0' })).toMatch(/port 3000 of 0\.0\.0\.0 without TLS, .* Set ATOLL_TLS_PORT, or/);
  expect(warning({ ATOLL_HOST: '192.0.2.7', ATOLL_TLS_PORT: '443' })).toMatch(
    /Give clients port 443 and close 3000 in the firewall/,
  );
});

test('nobody is warned whom no other machine reaches, or before whom a trusted proxy stands', () => {
  expect(warning({})).toBe(null);
  expect(warning({ ATOLL_HOST: '::1' })).toBe(null);
  expect(warning({ ATOLL_HOST: '0.0.0.0', ATOLL_TRUST_FORWARDED: '1' })).toBe(null);
});
