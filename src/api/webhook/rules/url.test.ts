import { expect, test } from 'bun:test';
import { checkWebhookUrl } from './url.ts';

test.each([
  ['https://hooks.example/a?b=c#d', 'https://hooks.example/a?b=c'],
  ['HTTP://Hooks.Example:8080', 'http://hooks.example:8080/'],
  ['http://8.8.8.8/', 'http://8.8.8.8/'],
  ['https://[2606:4700::1]/', 'https://[2606:4700::1]/'],
  // Names that only look like one of this machine.
  ['https://notlocalhost/', 'https://notlocalhost/'],
  ['https://localhost.example/', 'https://localhost.example/'],
])('deliveries go to %s as %s', (text, href) => {
  expect(checkWebhookUrl(text, false)).toBe(href);
});

test.each(['', 'hooks.example', 'ftp://hooks.example/', 'file:///etc/passwd', 'javascript:1', 'https://'])(
  '%p is no URL of a webhook',
  text => {
    for (const allowPrivate of [false, true])
      expect(() => checkWebhookUrl(text, allowPrivate)).toThrow('url: must be a URL that begins with https:// or');
  },
);

test.each(['https://user@hooks.example/', 'https://:secret@hooks.example/'])('%s would show a secret', text => {
  for (const allowPrivate of [false, true])
    expect(() => checkWebhookUrl(text, allowPrivate)).toThrow('url: must not have a user or a password');
});

test.each([
  'http://127.0.0.1/',
  'http://2130706433/',
  'http://10.1.2.3:80/',
  'http://169.254.169.254/latest/meta-data',
  'http://[::1]/',
  'http://[::ffff:127.0.0.1]/',
  'http://localhost/',
  'http://localhost./',
  'http://a.LOCALHOST/',
])('%s is refused, unless the operator allows such', text => {
  expect(() => checkWebhookUrl(text, false)).toThrow('is an address of this machine or of a private network');
  expect(checkWebhookUrl(text, true)).toStartWith('http://');
});
