import { expect, test } from 'bun:test';
import { readSettings } from '../settings/settings.ts';
import { requirePortsFree } from './ports.ts';

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
