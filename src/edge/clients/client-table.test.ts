import { expect, test } from 'bun:test';
import { ClientTable, type Seat } from './client-table.ts';
import { limitsWithin } from '../limits.ts';

const limits = {
  ...limitsWithin(100),
  clientConnectionsMax: 10,
  connectionsPerAddressMax: 4,
  localConnectionsReserved: 2,
};

/** Connects from an address; answers the place and whether it was taken away. */
function connect(table: ClientTable, address: string, nowMs = 0): { seat: Seat; evicted: boolean } | null {
  const seat = table.admit(address, nowMs);
  if (seat === null) return null;
  const connection = { seat, evicted: false };
  seat.owner = { evict: () => (connection.evicted = true), expired: () => seat.leave() };
  return connection;
}

test('an address that has its share makes room for itself alone', () => {
  const table = new ClientTable(limits, false);
  const other = connect(table, '192.0.2.1');
  const own = Array.from({ length: 4 }, () => connect(table, '192.0.2.2'));
  expect(connect(table, '::ffff:192.0.2.2')).not.toBeNull();
  expect([other?.evicted, own.map(one => one?.evicted)]).toEqual([false, [true, false, false, false]]);
  for (const one of own) one?.seat.busy();
  expect(connect(table, '192.0.2.2')).not.toBeNull();
  expect(table.size).toBe(5);
});

test('an address whose connections are all busy gets no more than its share, whoever else is idle', () => {
  const table = new ClientTable(limits, false);
  connect(table, '2001:db8::1');
  for (let i = 0; i < 4; i++) connect(table, `2001:db8:0:1::${i}`)?.seat.busy();
  expect(connect(table, '2001:db8:0:1:ffff::')).toBeNull();
  expect([table.size, table.refused, table.evicted]).toEqual([5, 1, 0]);
});

test('strangers leave places for this machine', () => {
  const table = new ClientTable(limits, false);
  for (let i = 0; i < 8; i++) connect(table, `192.0.2.${i}`)?.seat.busy();
  expect(connect(table, '198.51.100.1')).toBeNull();
  const operator = connect(table, '127.0.0.1');
  expect(operator).not.toBeNull();
  operator?.seat.busy();
  expect(connect(table, '::1')).not.toBeNull();
  expect(table.size).toBe(10);
});

test('the longest idle of all gives way where the whole table is full', () => {
  const table = new ClientTable(limits, false);
  const strangers = Array.from({ length: 8 }, (_, i) => connect(table, `192.0.2.${i}`, 10 + i));
  const local = connect(table, '127.0.0.1', 5);
  connect(table, '127.0.0.1', 30);
  connect(table, '127.0.0.1', 40);
  expect([local?.evicted, strangers[0]?.evicted]).toEqual([true, false]);
  connect(table, '127.0.0.1', 50);
  expect(strangers.map(one => one?.evicted)).toEqual([true, ...Array.from({ length: 7 }, () => false)]);
});

test('load balancers have no share of their own', () => {
  const table = new ClientTable(limits, true);
  for (let i = 0; i < 10; i++) connect(table, '192.0.2.9')?.seat.busy();
  expect(table.size).toBe(10);
  expect(connect(table, '192.0.2.9')).toBeNull();
});

test('the fuller the table is, the shorter idle connections are kept', () => {
  const table = new ClientTable({ ...limits, keepAliveTimeoutMs: 1000, crowdedKeepAliveMs: 100 }, false);
  const seats = Array.from({ length: 5 }, () => connect(table, '127.0.0.1', 0));
  table.closeIdle(5000);
  expect(table.size).toBe(5);
  for (let i = 0; i < 5; i++) seats.push(connect(table, '127.0.0.1', 4900));
  table.closeIdle(5000);
  expect(table.size).toBe(5);
  table.closeIdle(5200);
  expect(table.size).toBe(5);
});

test('leaving twice counts once, and an origin without connections is forgotten', () => {
  const table = new ClientTable(limits, false);
  for (let i = 0; i < 1000; i++) {
    const seat = connect(table, `10.0.${i >> 8}.${i & 255}`)?.seat;
    seat?.leave();
    seat?.leave();
    seat?.idle(1);
  }
  expect(table.size).toBe(0);
  for (let i = 0; i < 8; i++) connect(table, `192.0.2.${i}`);
  expect(table.size).toBe(8);
});

test.each([
  ['there are', 'direct', 1],
  ['there are where another machine carries a connection, which takes two', 'carried', 2],
] as const)('the limits fit the descriptors that %s', (_, way, each) => {
  for (const descriptors of [64, 1024, 10_000, 1_000_000]) {
    const { clientConnectionsMax, sandboxRequestsMax, apiRequestsMax, idleSandboxUpstreamsMax, ...parts } =
      limitsWithin(descriptors, way);
    const intoSandboxes = sandboxRequestsMax + idleSandboxUpstreamsMax;
    expect(clientConnectionsMax + apiRequestsMax + each * intoSandboxes).toBeLessThanOrEqual(descriptors);
    expect(clientConnectionsMax).toBeGreaterThan(sandboxRequestsMax);
    expect(parts.requestsPerTeamMax).toBeLessThanOrEqual(sandboxRequestsMax / 2);
    expect(parts.localApiRequestsReserved).toBeGreaterThan(0);
  }
});
