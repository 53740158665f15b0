import { expect, test } from 'bun:test';
import { waysOut } from './forwarding.ts';

const table = (...rows: [string, string][]) =>
  ['Iface\tDestination\tGateway', ...rows.map(([name, destination]) => `${name}\t${destination}\t00000000`), ''].join(
    '\n',
  );

test('the ways out are those to everything or to a public network', () => {
  expect(
    waysOut(
      table(
        ['eth0', '00000000'],
        ['eth0', '0002A8C0'],
        ['docker0', '000011AC'],
        ['wg0', '000010AC'],
        ['eth1', '007100CB'],
      ),
    ),
  ).toEqual(['eth0', 'eth1']);
});

test('links of sandboxes are none, and there may be none', () => {
  expect(waysOut(table(['at0-1', '007100CB']))).toEqual([]);
  expect(waysOut('')).toEqual([]);
});
