import { expect, test } from 'bun:test';
import { startCommandOf } from './start-command.ts';

const shell = ['/bin/sh', '-c'];

test.each([
  ['', '', undefined],
  [['app'], ['--port', '80'], 'app --port 80'],
  [['app'], 'echo "$HOME"', `app /bin/sh -c 'echo "$HOME"'`],
  ['', ['echo', "it's"], `echo 'it'\\''s'`],
  ['run $THIS', ['ignored'], `/bin/sh -c 'run $THIS'`],
  ['', 'a && b', `/bin/sh -c 'a && b'`],
])('%p and %p', (entrypoint, cmd, expected) => {
  expect(startCommandOf({ entrypoint, cmd, shell })).toBe(expected);
});
