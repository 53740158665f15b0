import { expect, test } from 'bun:test';
import { shareProbes } from './shares.ts';

/** The result of the named probe for a host with these properties. */
function look(name: string, host: Partial<NonNullable<Parameters<typeof shareProbes>[1]>>, requireSecure = false) {
  const able = { lowLimits: () => [], corePattern: () => 'core' };
  return shareProbes(requireSecure, { ...able, ...host })
    .find(probe => probe.name === name)
    ?.look();
}

test('limits of the host that are too low are named, with what they are and should be', () => {
  expect(look('shared limits', {})).toMatchObject({ status: 'ok' });
  const low = [
    { setting: 'kernel/pid_max', present: 32_768, least: 4_194_304 },
    { setting: 'fs/nr_open', present: 1, least: 2 },
  ];
  expect(look('shared limits', { lowLimits: () => low as never })).toMatchObject({
    status: 'limited',
    detail: 'kernel.pid_max is 32768 of 4194304; fs.nr_open is 1 of 2',
    remedy: expect.stringContaining('raise them with sysctl'),
  });
});

test('a socket of the host that gets the memory of what crashes is named; a program is not run', () => {
  for (const pattern of ['core', '|/usr/lib/systemd-coredump %P'])
    expect(look('core dumps', { corePattern: () => pattern })).toMatchObject({ status: 'ok' });
  expect(look('core dumps', { corePattern: () => '@/run/cores' })).toMatchObject({
    status: 'limited',
    detail: expect.stringContaining('to /run/cores,'),
    remedy: 'sysctl kernel.core_pattern=core',
  });
});

test('the probe says whether sandboxes can be used without a token', () => {
  expect(look('unsecured sandboxes', {}, true)).toMatchObject({
    status: 'ok',
    detail: expect.stringMatching(/^refused/),
  });
  expect(look('unsecured sandboxes', {})).toMatchObject({ status: 'ok', detail: expect.stringMatching(/^allowed/) });
});
