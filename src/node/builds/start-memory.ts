import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { newUuid } from '../../base/id.ts';
import { sha256Hex } from '../../base/secret.ts';
import type { BuildState } from '../../protocol/build.ts';
import type { SandboxResources, StartedImage } from '../../protocol/node.ts';
import type { NodeContext } from '../context.ts';
import { listSnapshots, snapshotOf } from '../sandbox/snapshot.ts';
import type { BuildSandbox } from './build-sandbox.ts';

/** Bumped when what is kept comes to mean something else. */
const version = 1;
/** In the snapshot's directory, beside what is sealed: written when all of it is there. */
const noteFile = 'started.json';

/** Everything that what runs after the start depends on. */
export type StartFacts = {
  /** Whoever builds a template may know what its server has drawn: memory is kept for his team alone. */
  teamId: string;
  state: BuildState;
  startCommand: string;
  readyCommand: string | undefined;
  resources: SandboxResources;
};

type Note = { key: string; layers: string[] };

/** What a build with the same facts has kept, where all of it is still there. */
export function findStarted(node: NodeContext, facts: StartFacts): StartedImage | undefined {
  const key = keyOf(node, facts);
  for (const { snapshotId } of listSnapshots(node)) {
    const note = noteOf(node, snapshotId);
    if (note?.key === key && note.layers.every(digest => node.layers.has(digest))) return { snapshotId, layers: note.layers, resources: facts.resources };
  }
  return undefined;
}

/** Keeps a sandbox whose server is ready. Errors: `precondition` (it can't be kept, with the reason), `no_space`, `internal`. */
export async function keepStarted(node: NodeContext, sandbox: BuildSandbox, facts: StartFacts): Promise<StartedImage> {
  const snapshotId = newUuid();
  const { layers } = await sandbox.keep(snapshotId);
  writeFileSync(join(snapshotOf(node, snapshotId), noteFile), JSON.stringify({ key: keyOf(node, facts), layers } satisfies Note), { mode: 0o600 });
  return { snapshotId, layers, resources: facts.resources };
}

/** A new agent is a reason to start anew: it is part of what is kept. */
function keyOf(node: NodeContext, facts: StartFacts): string {
  return sha256Hex(JSON.stringify([version, basename(node.agentDir), facts]));
}

function noteOf(node: NodeContext, snapshotId: string): Note | undefined {
  try {
    return JSON.parse(readFileSync(join(snapshotOf(node, snapshotId), noteFile), 'utf8')) as Note;
  } catch {
    return undefined; // a snapshot of a sandbox, or one that a crash cut off before its note
  }
}
