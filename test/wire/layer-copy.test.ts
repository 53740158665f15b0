import { expect, test } from 'bun:test';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '../../src/base/telemetry/log.ts';
import type { LayerProtocol, MachineService, VolumeCarrier } from '../../src/protocol/cluster.ts';
import { copyLayer } from '../../src/wire/layer-copy.ts';
import { machineAt, serveMachine } from '../../src/wire/node-service.ts';
import { overNetwork } from '../../src/wire/over-network.ts';
import { volumesOverWire } from '../../src/wire/pause-copy.ts';
import { waitFor } from '../support/process.ts';
import { newAuthority, openFiles } from './support/cluster.ts';

// A layer goes from one machine to another through control, over two TLS connections.

const digest = `sha256:${'a'.repeat(64)}`;

/**
 * A machine with files instead of layers; when they are read, this many bytes never arrive (or, below 0, too many do).
 */
function machineWith(path: string, authority: ReturnType<typeof newAuthority>, missing = 0) {
  const nodeId = crypto.randomUUID();
  const kept = { isKept: false, isDropped: false };
  const layers: LayerProtocol = {
    missing: async () => [],
    bytes: async () => 0,
    openRead: async () => ({ sizeBytes: statSync(path).size + missing, descriptor: openSync(path, 'r') }),
    openWrite: async () => ({ writeId: 'one', descriptor: openSync(path, 'w') }),
    keepWrite: async () => void (kept.isKept = true),
    dropWrite: async () => void (kept.isDropped = true),
  };
  const identity = authority.node(nodeId);
  const service = {
    layers: { ...layers, ...overNetwork(layers, (_, sizeBytes) => sizeBytes) },
  } as unknown as MachineService;
  const served = serveMachine(service, { hostname: '127.0.0.1', port: 0, identity }, silentLog);
  const place = { nodeId, host: '127.0.0.1', port: served.port, certificates: [identity.digest] };
  const machine = machineAt(nodeId, async () => ({ place, identity: authority.control('api') }), silentLog);
  return { machine, served, kept };
}

test('all bytes of a layer arrive before it is kept', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-layer-'));
  const content = Buffer.alloc(20_000_003, 'content of a layer ');
  const [from, to] = [join(folder, 'from'), join(folder, 'to')];
  writeFileSync(from, content);
  const authority = newAuthority();
  const [source, target] = [machineWith(from, authority), machineWith(to, authority)];
  await copyLayer(digest, source.machine.layers, target.machine.layers);
  expect(target.kept.isKept).toBe(true);
  expect(readFileSync(to).equals(content)).toBe(true);
  for (const { machine, served } of [source, target]) {
    machine.close();
    served.stop();
  }
  rmSync(folder, { recursive: true });
});

test('what came in part is not kept: a connection that broke looks like one that has ended', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-layer-'));
  writeFileSync(join(folder, 'from'), 'the beginning of a layer');
  const authority = newAuthority();
  const [source, target] = [
    machineWith(join(folder, 'from'), authority, 7),
    machineWith(join(folder, 'to'), authority),
  ];
  await expect(copyLayer(digest, source.machine.layers, target.machine.layers)).rejects.toThrow('24 bytes of 31');
  expect(target.kept).toEqual({ isKept: false, isDropped: true });
  for (const { machine, served } of [source, target]) {
    machine.close();
    served.stop();
  }
  rmSync(folder, { recursive: true });
});

test('a machine that sends more than it has announced takes no more of the disk than was kept for it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-layer-'));
  const [from, to] = [join(folder, 'from'), join(folder, 'to')];
  writeFileSync(from, Buffer.alloc(20 << 20, 'x'));
  const authority = newAuthority();
  const announced = 1 << 20;
  const [source, target] = [machineWith(from, authority, announced - (20 << 20)), machineWith(to, authority)];
  await expect(copyLayer(digest, source.machine.layers, target.machine.layers)).rejects.toThrow();
  expect(target.kept).toEqual({ isKept: false, isDropped: true });
  expect(statSync(to).size).toBeLessThanOrEqual(announced);
  for (const { machine, served } of [source, target]) {
    machine.close();
    served.stop();
  }
  rmSync(folder, { recursive: true });
});

test('a machine that takes no layer leaves no connection open to the one that would have sent it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-layer-'));
  writeFileSync(join(folder, 'from'), Buffer.alloc(1 << 20));
  const authority = newAuthority();
  const { machine, served } = machineWith(join(folder, 'from'), authority);
  const full = { openWrite: () => Promise.reject(new Error('no room')) } as unknown as LayerProtocol;
  const refused = () => copyLayer(digest, machine.layers, full).catch(String);
  expect(await refused()).toBe('Error: no room');
  const before = openFiles();
  for (let round = 0; round < 10; round++) await refused();
  await waitFor('what was opened is closed', () => openFiles() <= before);
  machine.close();
  served.stop();
  rmSync(folder, { recursive: true });
});

test('what breaks off on its way takes no place, and who asks for it hears why', async () => {
  const [dropped, refusal] = [Promise.withResolvers<void>(), new Error('too short')];
  const arrival = {
    async take(bytes: AsyncIterable<Uint8Array>) {
      for await (const _ of bytes);
      throw refusal;
    },
    keep: async () => {},
    drop: async () => dropped.resolve(),
  };
  const exchange = volumesOverWire({ receive: async () => arrival } as unknown as VolumeCarrier);
  const { writeId, descriptor } = await exchange.openWrite('volume', 'key', 10);
  closeSync(descriptor);
  await dropped.promise;
  expect(exchange.keepWrite(writeId)).rejects.toThrow(refusal);
});
