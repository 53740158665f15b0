import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError, messageOf } from '../base/error.ts';

/** The file that makes a folder a template's definition; the members are those of the REST API, but for `fromMachine` and `files`. */
export type TemplateDefinition = {
  name?: string;
  fromTemplate?: string;
  fromImage?: string;
  /** The lowest layer: distribution packages (a file of names) and Node.js (a folder with an npm lock file) from this machine's own sources. */
  fromMachine?: { packages: string; npm: string };
  cpuCount?: number;
  memoryMB?: number;
  /** What of the folder its COPY steps take. */
  files?: string[];
  steps?: { type: string; args: string[] }[];
  startCmd?: string;
  readyCmd?: string;
};

const definitionFile = 'template.json';

/** Reads a folder's definition. Throws `invalid`. */
export function readDefinition(folder: string): TemplateDefinition {
  const path = join(folder, definitionFile);
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as TemplateDefinition;
  } catch (error) {
    throw new AtollError('invalid', `${path} can't be read as the definition of a template: ${messageOf(error)}`);
  }
}

/** The files as one archive; the same files give the same archive. Throws `invalid`. */
export async function archiveOf(folder: string, files: string[]): Promise<Uint8Array<ArrayBuffer>> {
  const child = Bun.spawn(['tar', '-C', folder, '--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner', '--exclude=__pycache__', '-cf', '-', '--', ...files], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [archive, complaint, status] = await Promise.all([new Response(child.stdout).bytes(), new Response(child.stderr).text(), child.exited]);
  if (status !== 0) throw new AtollError('invalid', `The files of ${folder} can't be packed: ${complaint.trim()}`);
  return archive;
}
