import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import type { Snapshot, TakeSnapshot } from '../../protocol/node.ts';
import { makeLayer, pathInHelper } from '../builds/layer/make-layer.ts';
import { openView } from '../builds/view.ts';
import type { NodeContext, Running } from '../context.ts';
import { slotOf } from '../layout.ts';
import { platformFiles } from '../rootfs/platform-files.ts';
import { volatile } from './empty-volatile.ts';
import { inTurn } from './in-turn.ts';
import { syncDisk } from './kept.ts';
import { runningOf } from './update-network.ts';

const copyTimeoutMs = 10 * 60_000;
/** Of one layer. */
const layerLimits = { bytesMax: 20 * 2 ** 30, inodesMax: 1_000_000 };
/** From here on a snapshot puts its layers together into one: a sandbox's root takes at most 128, and snapshots of snapshots add to them. */
const layersMax = 64;

/** Keeps what a running sandbox is at this moment. */
export async function takeSnapshot(node: NodeContext, request: TakeSnapshot): Promise<Snapshot> {
  if (request.memory) throw new AtollError('precondition', 'the memory of sandboxes can’t be kept on this node');
  await using copy = await inTurn(runningOf(node, request), () => copyDisk(node, runningOf(node, request)));
  const layers = await flattened(node, await layersWith(node, copy));
  return { layers, kept: 'filesystem' };
}

type DiskCopy = AsyncDisposable & { image: string; mountPoint: string; below: string[] };

/** A copy of a sandbox's disk from one moment. The sandbox stands still while it is made. */
async function copyDisk(node: NodeContext, { record }: Running): Promise<DiskCopy> {
  const slot = slotOf(node.layout.installation, record.slot);
  const disk = node.records.diskOf(record.sandboxId);
  mkdirSync(node.layout.snapshots, { recursive: true, mode: 0o700 });
  const directory = mkdtempSync(join(node.layout.snapshots, 'copying-'));
  const image = join(directory, 'disk.img');
  await using undo = new AsyncDisposableStack();
  undo.defer(() => rmSync(directory, { recursive: true, force: true }));
  await node.driver.freeze(slot);
  try {
    await syncDisk(node, slot, disk);
    const { status, output } = await node.helper.spawn(['cp', '--reflink=auto', '--sparse=auto', disk, image], { timeoutMs: copyTimeoutMs });
    if (status !== 0) throw new AtollError(/No space left/.test(output) ? 'no_space' : 'internal', `the sandbox's disk can't be copied: ${output.trim()}`);
  } finally {
    node.driver.thaw(slot);
  }
  const mountPoint = mkdtempSync(join(node.layout.mounts, 'snapshot-'));
  undo.defer(() => node.disks.close(mountPoint));
  await node.disks.open(image, mountPoint);
  const disposal = undo.move();
  return { image, mountPoint, below: record.image.layers, [Symbol.asyncDispose]: () => disposal.disposeAsync() };
}

/** What was written becomes a layer above those that the sandbox has. */
async function layersWith(node: NodeContext, { mountPoint, below }: DiskCopy): Promise<string[]> {
  const upper = pathInHelper(node, join(mountPoint, 'upper'));
  const layer = await makeLayer(node, { job: { kind: 'seal', upper, excluded: [...platformFiles, ...volatile] }, limits: layerLimits });
  return layer === null ? below : [...below, layer];
}

async function flattened(node: NodeContext, layers: string[]): Promise<string[]> {
  if (layers.length < layersMax) return layers;
  await using view = await openView(node, layers);
  const flat = await makeLayer(node, { job: { kind: 'seal', upper: view.path, excluded: [] }, limits: layerLimits });
  return flat === null ? [] : [flat];
}
