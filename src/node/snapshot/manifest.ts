import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import type { SandboxMount } from './mounts.ts';
import { parseJson } from '../../base/json-text.ts';

/** What is in a snapshot's directory, in `manifest.json`. */
export type Manifest = {
  version: 1;
  /** Whether processes and memory are in it, or the disk alone. */
  memory: boolean;
  /** Whether a copy of the disk is in it, as `disk.img`. */
  disk: boolean;
  createdAtMs: number;
  mounts: SandboxMount[];
  /** What took it: images are for the same machine type, and not for older kernels and CRIUs. */
  madeBy: { machine: string; kernel: string; criu: string | null };
  /** The caller's own. */
  facts: Record<string, unknown>;
};

/** The copy of the disk in a snapshot's directory. */
export const diskFile = 'disk.img';
const manifestFile = 'manifest.json';

/** Writes the manifest of a snapshot. It has its name when it is whole: native/snapshot-follow.c goes by that. */
export function writeManifest(directory: string, manifest: Manifest): void {
  const file = join(directory, manifestFile);
  writeFileSync(`${file}.new`, JSON.stringify(manifest, null, 2), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** Whether there is a snapshot at all; whether it is whole, `readManifest` and the checksums say. */
export function hasManifest(directory: string): boolean {
  return existsSync(join(directory, manifestFile));
}

/** Fails with `not_found`, or `unavailable` where the directory holds something else than a whole snapshot of ours. */
export function readManifest(directory: string): Manifest {
  if (!hasManifest(directory)) throw new AtollError('not_found', `there is no snapshot at ${directory}`);
  const manifest = readManifestIfWhole(directory);
  if (manifest) return manifest;
  throw new AtollError('unavailable', `the snapshot at ${directory} is damaged, or of another version of Atoll`);
}

/** Undefined where it is damaged or of another version: a loss of power leaves such, of a snapshot being taken. */
export function readManifestIfWhole(directory: string): Manifest | undefined {
  const text = readFileSync(join(directory, manifestFile), 'utf8');
  const manifest = parseJson(text) as Manifest | null | undefined;
  return manifest?.version === 1 ? manifest : undefined;
}
