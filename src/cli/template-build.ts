import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { AtollError, messageOf } from '../base/error.ts';
import { parseArguments } from './arguments.ts';
import type { Command, Terminal } from './command.ts';
import type { PlatformRequest } from './platform-request.ts';

/** The file that makes a folder a template's definition; the members are those of the REST API. */
type Definition = {
  name?: string;
  fromTemplate?: string;
  fromImage?: string;
  cpuCount?: number;
  memoryMB?: number;
  /** What of the folder its COPY steps take. */
  files?: string[];
  steps?: { type: string; args: string[] }[];
  startCmd?: string;
  readyCmd?: string;
};

type Registered = { templateID: string; buildID: string };
type Status = { status: string; logEntries: { message: string; level: string }[]; reason?: { message: string } };

const definitionFile = 'template.json';
const pollMs = 200;

/** `atoll template build`: builds a folder with a template.json. */
export function templateBuildCommand(request: PlatformRequest): Command {
  return {
    name: 'template build',
    usage: 'FOLDER [--public] [--no-cache]',
    summary: 'Builds the template that a folder with template.json defines',
    async run(args, terminal) {
      const { values, positionals } = parseArguments(args, { public: { type: 'boolean' }, 'no-cache': { type: 'boolean' } }, ['FOLDER']);
      const folder = resolve(positionals[0] ?? '.');
      const definition = readDefinition(folder);
      const { name = basename(folder), fromTemplate, fromImage, cpuCount, memoryMB, startCmd, readyCmd } = definition;
      const { templateID, buildID } = (await request('POST', '/v3/templates', { name, cpuCount, memoryMB })) as Registered;
      const filesHash = definition.files ? await upload(request, templateID, folder, definition.files) : undefined;
      const steps = (definition.steps ?? []).map(step => (step.type === 'COPY' ? { ...step, filesHash } : step));
      const start = { fromTemplate, fromImage, steps, startCmd, readyCmd, force: values['no-cache'] ?? false };
      await request('POST', `/v2/templates/${templateID}/builds/${buildID}`, start);
      if (!(await follow(request, terminal, templateID, buildID))) return 1;
      if (values.public) await request('PATCH', `/templates/${templateID}`, { public: true });
      terminal.out(`${name}\n`);
      return 0;
    },
  };
}

function readDefinition(folder: string): Definition {
  const path = join(folder, definitionFile);
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Definition;
  } catch (error) {
    throw new AtollError('invalid', `${path} can't be read as the definition of a template: ${messageOf(error)}`);
  }
}

/** Sends the files as one archive, unless the platform has it. The same files give the same archive. */
async function upload(request: PlatformRequest, templateId: string, folder: string, files: string[]): Promise<string> {
  const archive = await archiveOf(folder, files);
  const hash = createHash('sha256').update(archive).digest('hex');
  const slot = (await request('GET', `/templates/${templateId}/files/${hash}`)) as { present: boolean; url: string };
  if (slot.present) return hash;
  const answer = await fetch(slot.url, { method: 'PUT', body: archive });
  if (!answer.ok) throw new AtollError('internal', `The files could not be uploaded: ${answer.status} ${await answer.text()}`);
  return hash;
}

async function archiveOf(folder: string, files: string[]): Promise<Uint8Array<ArrayBuffer>> {
  const child = Bun.spawn(['tar', '-C', folder, '--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner', '--exclude=__pycache__', '-cf', '-', '--', ...files], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [archive, complaint, status] = await Promise.all([new Response(child.stdout).bytes(), new Response(child.stderr).text(), child.exited]);
  if (status !== 0) throw new AtollError('invalid', `The files of ${folder} can't be packed: ${complaint.trim()}`);
  return archive;
}

/** Shows the build's log until it has ended. True when it is ready. */
async function follow(request: PlatformRequest, terminal: Terminal, templateId: string, buildId: string): Promise<boolean> {
  for (let seen = 0; ; ) {
    const { status, logEntries, reason } = (await request('GET', `/templates/${templateId}/builds/${buildId}/status?logsOffset=${seen}`)) as Status;
    seen += logEntries.length;
    for (const entry of logEntries) terminal.err(`${entry.message}\n`);
    if (logEntries.length > 0) continue;
    if (status === 'ready') return true;
    if (status === 'error') {
      terminal.err(`The build failed: ${reason?.message ?? 'no reason was given'}\n`);
      return false;
    }
    await Bun.sleep(pollMs);
  }
}
