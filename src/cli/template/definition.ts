import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError, messageOf } from '../../base/error.ts';

/**
 * The file that makes a folder a template's definition. Its members are those of the REST API, except `fromMachine` and
 * `files`.
 */
type TemplateDefinition = {
  name?: string;
  fromTemplate?: string;
  fromImage?: string;
  /**
   * The lowest layer, from this machine's sources: distribution packages (a file of names) and Node.js (a folder with
   * an npm lock file).
   */
  fromMachine?: { packages: string; npm: string };
  cpuCount?: number;
  memoryMB?: number;
  /** Files of the folder that the COPY steps use. */
  files?: string[];
  /** A step with a `part` applies only to builds that have that part. */
  steps?: { type: string; args: string[]; part?: string }[];
  startCmd?: string;
  readyCmd?: string;
};

/** The name of the file that makes a folder a template's definition. */
export const definitionFile = 'template.json';

/** Reads a folder's definition. Throws `not_found`, `invalid`. */
export function readDefinition(folder: string): TemplateDefinition {
  const path = join(folder, definitionFile);
  if (!existsSync(path))
    throw new AtollError(
      'not_found',
      `There is no ${definitionFile} in ${folder}: \`atoll template init ${folder}\` begins one. A Dockerfile is ` +
        'built by `e2b template create NAME` or `fromDockerfile` of the SDKs.',
    );
  const wrong = (why: string) =>
    new AtollError('invalid', `${path} can't be read as the definition of a template: ${why}`);
  try {
    const definition = JSON.parse(readFileSync(path, 'utf8')) as TemplateDefinition | null;
    if (typeof definition === 'object' && definition !== null && !Array.isArray(definition)) return definition;
  } catch (error) {
    throw wrong(messageOf(error));
  }
  throw wrong('it must be an object');
}

/** The steps of a build with these parts; by default with all. */
export function stepsOf({ steps = [] }: TemplateDefinition, parts?: readonly string[]): BuildStepDefinition[] {
  return steps
    .filter(({ part }) => part === undefined || parts === undefined || parts.includes(part))
    .map(({ type, args }) => ({ type, args }));
}

type BuildStepDefinition = { type: string; args: string[] };

/** The files as one archive; the same files give the same archive. Throws `invalid`. */
export async function archiveOf(folder: string, files: string[]): Promise<Uint8Array<ArrayBuffer>> {
  const child = Bun.spawn(
    [
      'tar',
      '-C',
      folder,
      '--sort=name',
      // Programs that repack files reject times before 1980.
      '--mtime=@315619200',
      '--owner=0',
      '--group=0',
      '--numeric-owner',
      '--exclude=__pycache__',
      '-cf',
      '-',
      '--',
      ...files,
    ],
    { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
  );
  const [archive, complaint, status] = await Promise.all([
    new Response(child.stdout).arrayBuffer(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (status !== 0) throw new AtollError('invalid', `The files of ${folder} can't be packed: ${complaint.trim()}`);
  return new Uint8Array(archive);
}
