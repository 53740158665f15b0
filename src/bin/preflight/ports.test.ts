import { expect, test } from 'bun:test';
import { readSettings } from '../settings/settings.ts';
import { portError, requirePortsFree } from './ports.ts';

const refusal = (env: Record<string, string>) => {
  try {
    return requirePortsFree(readSettings({ ATOLL_DATA_DIR: '/srv/atoll', ATOLL_HOST: '127.0.0.1', ...env }));
  } catch (error) {
    return error;
  }
};

test('an address and a port that may be there later are no lasting refusal', () => {
  expect(refusal({ ATOLL_PORT: '0', ATOLL_HOST: '192.0.2.1' })).toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('192.0.2.1, which is no address of this machine'),
  });
  using other = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
  expect(refusal({ ATOLL_PORT: String(other.port) })).toMatchObject({ code: 'conflict' });
  expect(refusal({ ATOLL_PORT: '0' })).toBeUndefined();
});

test('a port that can’t be opened is named with the setting that changes it', () => {
  const settingsOf = (env: Record<string, string>) =>
    readSettings({ ATOLL_DATA_DIR: '/srv/atoll', ATOLL_HOST: '127.0.0.1', ATOLL_PORT: '3000', ...env });
  const inUse = Object.assign(new Error('in use'), { code: 'EADDRINUSE' });
  const both = settingsOf({ ATOLL_TLS_PORT: '3443' });
  const cases = [
    [settingsOf({}), undefined, 'Port 3000 of 127.0.0.1', 'ATOLL_PORT'],
    [both, undefined, 'Port 3000 or 3443 of 127.0.0.1', 'ATOLL_PORT'],
    [both, 3000, 'Port 3000 of 127.0.0.1', 'ATOLL_PORT'],
    [both, 3443, 'Port 3443 of 127.0.0.1', 'ATOLL_TLS_PORT'],
  ] as const;
  for (const [settings, refused, which, variable] of cases) {
    const error = portError(settings, inUse, refused);
    expect(error).toMatchObject({ code: 'conflict', cause: inUse });
    expect(error.message).toBe(
      `${which} can't be opened (in use). End what uses it, or set ${variable} to another one.`,
    );
  }
});

test('the port for TLS is tried as well', () => {
  using other = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
  expect(refusal({ ATOLL_PORT: '0', ATOLL_TLS_PORT: String(other.port) })).toMatchObject({
    code: 'conflict',
    message: expect.stringContaining('set ATOLL_TLS_PORT'),
  });
});
