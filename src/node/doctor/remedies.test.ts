import { expect, test } from 'bun:test';
import { AtollError } from '../../base/error.ts';
import { notInstalled } from '../../base/process/command.ts';
import { adviceFor } from '../../base/process/set-up.ts';
import { findingOf } from './probe.ts';
import { remedyOf } from './sandbox.ts';

test('the reason why no sandbox could be made has a remedy, if it says what is wrong', () => {
  for (const [failure, says] of [
    ['this node has no loop device for another disk: disk-mount: loop device: Inappropriate ioctl', 'modprobe loop'],
    [
      'crun could not start a sandbox: open /proc/sys/net/ipv4/ping_group_range: Read-only file system',
      '/proc/sys must be writable',
    ],
    ["EROFS: read-only file system, mkdir '/run/atoll'", '/run must be writable'],
    ['crun could not start a sandbox: something else', 'mend what else `atoll doctor` finds'],
  ] as const)
    expect(remedyOf(failure)).toContain(says);
});

test('a program that is missing is no lack where the next start installs it, and one where nothing does', async () => {
  const look = () => {
    throw new AtollError('unavailable', 'nft is not installed', { detail: notInstalled });
  };
  const found = async (origin: 'checkout' | 'release', needed: boolean) =>
    (await findingOf({ name: 'nftables', needed, look }, adviceFor(origin, false))).status;
  expect(await found('checkout', true)).toBe('limited');
  expect(await found('release', true)).toBe('missing');
  expect(await found('release', false)).toBe('limited');
  const { detail, remedy } = await findingOf({ name: 'n', needed: true, look }, adviceFor('release', false));
  expect([detail, remedy]).toEqual([
    'not tried: nft is not installed',
    'Install the package of the distribution that has it.',
  ]);
});
