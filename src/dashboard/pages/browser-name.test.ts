import { expect, test } from 'bun:test';
import { browserName } from './browser-name.ts';

const chrome = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36';

test('browsers are named by what they alone say', () => {
  expect(browserName(chrome)).toBe('Chrome 156 on Linux');
  expect(browserName(`${chrome} Edg/156.0.0.0`)).toBe('Edge 156 on Linux');
  expect(browserName('Mozilla/5.0 (Windows NT 10.0; rv:150.0) Gecko/20100101 Firefox/150.0')).toBe(
    'Firefox 150 on Windows',
  );
  expect(browserName('Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Version/19.0 Safari/604.1')).toBe(
    'Safari 19 on iOS',
  );
  expect(browserName('curl/8.5.0')).toBe('curl/8.5.0');
});
