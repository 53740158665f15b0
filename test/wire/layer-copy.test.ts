import { expect, test } from 'bun:test';
import { mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '../../src/base/telemetry/log.ts';
import type { LayerProtocol, MachineService } from '../../src/protocol/cluster.ts';
import { copyLayer } from '../../src/wire/layer-copy.ts';
import { machineAt, serveMachine } from '../../src/wire/node-service.ts';
import { overNetwork } from '../../src/wire/over-network.ts';
import { newAuthority } from './support/cluster.ts';

// A layer goes from one machine to another through control, over two TLS connections.

const digest = `sha256:${'a'.repeat(64)}`;

/** A machine with files in place of layers; of those that are read so many bytes never come. */
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
  const service = { layers: { ...layers, ...overNetwork(layers) } } as unknown as MachineService;
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
