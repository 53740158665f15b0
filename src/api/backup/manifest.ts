import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { sha256Hex } from '../../base/crypto/secret.ts';
import { platformVersion } from '../../base/version.ts';
import { sumFiles } from './hash.ts';
import type { FileSum } from './hash.ts';

/** The version of the format. An unknown one is refused. */
const format = 1;
const manifestFile = 'manifest.json';
const sealFile = 'manifest.sha256';

/** What a backup says about itself. */
export type Manifest = {
  format: number;
  /** Version of Atoll that wrote it. */
  version: string;
  createdAt: string;
  /** Paused sandboxes that are in it. */
  sandboxes: string[];
  /** All other files, by path. */
  files: Record<string, FileSum>;
};

/** Lists every file of a directory in a manifest beside them. */
export async function writeManifest(directory: string, sandboxes: string[], signal?: AbortSignal): Promise<void> {
  const manifest: Manifest = {
    format,
    version: platformVersion,
    createdAt: new Date().toISOString(),
    sandboxes,
    files: await sumFiles(directory, signal),
  };
  const text = JSON.stringify(manifest);
  writeFileSync(join(directory, manifestFile), text, { mode: 0o600 });
  writeFileSync(join(directory, sealFile), sha256Hex(text), { mode: 0o600 });
}

/**
 * The manifest of an unpacked backup; checks that every file is as it was written. Throws `invalid`, naming the file
 * that is not.
 */
export async function checkManifest(directory: string, signal?: AbortSignal): Promise<Manifest> {
  const text = textOf(directory, manifestFile);
  if (sha256Hex(text) !== textOf(directory, sealFile).trim()) throw damaged('its list of files was changed');
  const manifest = JSON.parse(text) as Manifest;
  if (manifest.format !== format)
    throw new AtollError(
      'precondition',
      `The backup has format ${manifest.format} (of Atoll ${manifest.version}) and this version reads ${format}`,
    );
  // The IDs become names of directories.
  const strange = manifest.sandboxes.find(sandboxId => !/^[a-z0-9]+$/.test(sandboxId));
  if (strange !== undefined) throw damaged(`${JSON.stringify(strange)} is no sandbox`);
  const found = await sumFiles(directory, signal);
  for (const path of new Set([...Object.keys(manifest.files), ...Object.keys(found)])) {
    if (path === manifestFile || path === sealFile) continue;
    const [wanted, present] = [manifest.files[path], found[path]];
    if (!wanted) throw damaged(`${path} does not belong to it`);
    if (!present) throw damaged(`${path} is missing`);
    if (wanted.bytes !== present.bytes || wanted.sha256 !== present.sha256) throw damaged(`${path} was changed`);
  }
  return manifest;
}

function textOf(directory: string, name: string): string {
  try {
    return readFileSync(join(directory, name), 'utf8');
  } catch (error) {
    throw new AtollError('invalid', 'This is no backup of Atoll: it has no manifest', { cause: error });
  }
}

const damaged = (what: string) => new AtollError('invalid', `The backup is damaged: ${what}. Nothing was restored.`);
