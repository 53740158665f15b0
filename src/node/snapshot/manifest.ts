import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import type { SandboxMount } from './mounts.ts';
import { parseJson } from '../../base/json-text.ts';

/** The content of `manifest.json` in a snapshot's directory. */
export type Manifest = {
  version: 1;
  /** Whether it contains processes and memory, or only the disk. */
  memory: boolean;
  /** Whether it contains a copy of the disk, as `disk.img`. */
  disk: boolean;
  createdAtMs: number;
  mounts: SandboxMount[];
  /** What took it: images are for the same machine type, and not for older kernels and CRIUs. */
  madeBy: { machine: string; kernel: string; criu: string | null };
  /** The caller's own facts. */
  facts: Record<string, unknown>;
};

/** The copy of the disk in a snapshot's directory. */
export const diskFile = 'disk.img';
const manifestFile = 'manifest.json';

/**
 * Writes the manifest of a snapshot. It gets its name when it is complete, which native/snapshot-follow.c relies on.
 */
export function writeManifest(directory: string, manifest: Manifest): void {
  const file = join(directory, manifestFile);
  writeFileSync(`${file}.new`, JSON.stringify(manifest, null, 2), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** Whether there is a snapshot at all; `readManifest` and the checksums tell whether it is complete. */
export function hasManifest(directory: string): boolean {
  return existsSync(join(directory, manifestFile));
}

/**
 * Fails with `not_found`, or `unavailable` if the directory holds anything but a complete snapshot of this platform.
 */
export function readManifest(directory: string): Manifest {
  if (!hasManifest(directory)) throw new AtollError('not_found', `there is no snapshot at ${directory}`);
  const manifest = readManifestIfWhole(directory);
  if (manifest) return manifest;
  throw new AtollError('unavailable', `the snapshot at ${directory} is damaged, or of another version of Atoll`);
}

/**
 * Undefined if it is damaged or of another version: a loss of power while a snapshot is taken leaves such a manifest.
 */
export function readManifestIfWhole(directory: string): Manifest | undefined {
  const text = readFileSync(join(directory, manifestFile), 'utf8');
  const manifest = parseJson(text) as Manifest | null | undefined;
  return manifest?.version === 1 ? manifest : undefined;
}
