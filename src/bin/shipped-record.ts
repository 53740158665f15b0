import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readIfThere } from './identity.ts';

/** Which build of a shipped template this installation has made, and of which definition. */
export type ShippedBuildNote = { buildId: string; key: string };

const fileOf = (dataDir: string) => join(dataDir, 'shipped-templates.json');

/** What was noted of a template; undefined where nothing was, or where what was can't be read any more. */
export function readShippedNote(dataDir: string, name: string): ShippedBuildNote | undefined {
  return readAll(dataDir)[name];
}

export function noteShippedBuild(dataDir: string, name: string, note: ShippedBuildNote): void {
  const path = fileOf(dataDir);
  writeFileSync(`${path}.new`, JSON.stringify({ ...readAll(dataDir), [name]: note }, null, 2), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

function readAll(dataDir: string): Record<string, ShippedBuildNote> {
  try {
    return JSON.parse(readIfThere(fileOf(dataDir)) ?? '{}') as Record<string, ShippedBuildNote>;
  } catch {
    // Without it, templates stay as they are.
    return {};
  }
}
