import { expect, test } from 'bun:test';
import { withoutPlaces } from './without-places.ts';

test('a program’s message about its own files is shown without their folders', () => {
  expect(withoutPlaces("cp: error writing '/var/lib/atoll/node/disks/a.img': No space left on device\n")).toBe(
    "cp: error writing '…/a.img': No space left on device",
  );
  expect(withoutPlaces('/proc/4711/root: No such file or directory')).toBe('…/root: No such file or directory');
  expect(withoutPlaces('sync: /run/x, (/a/b c) 3/4 of /tmp')).toBe('sync: …/x, (…/b c) 3/4 of /tmp');
});

test('where places are given, other paths stay', () => {
  const says = "Can't open /run/atoll/1/mounts/volume-s1-0/x, /home/user/y and /run/atoll/z";
  expect(withoutPlaces(says, ['/run/atoll/1', '/run/atoll/1/mounts', '/', ''])).toBe(
    "Can't open …/volume-s1-0/x, /home/user/y and /run/atoll/z",
  );
});
