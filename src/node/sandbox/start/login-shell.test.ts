import { expect, test } from 'bun:test';
import { loginShell } from './login-shell.ts';

test('a command stays as it is where PATH says nothing of its own', () => {
  const plain = ['/bin/bash', '-l', '-c', 'go version'];
  expect(loginShell('go version', {})).toEqual(plain as [string, ...string[]]);
  expect(loginShell('go version', { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:' })).toEqual(
    plain as [string, ...string[]],
  );
});

test('folders of its own are found first, whatever they are called', () => {
  const [program, ...args] = loginShell('printf %s "$PATH"', { PATH: "/go/bin:/usr/bin:/it's $HOME" });
  const { stdout } = Bun.spawnSync([program, ...args], { env: { PATH: '/usr/bin:/bin' } });
  expect(stdout.toString()).toStartWith("/go/bin:/it's $HOME:/");
});
