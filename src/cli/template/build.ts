import { createHash } from 'node:crypto';
import { basename, resolve } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { jsonText } from '../terminal/table.ts';
import { parseArguments } from '../terminal/arguments.ts';
import type { Command, Terminal } from '../terminal/command.ts';
import type { PlatformFollow, PlatformRequest } from '../connection/platform-request.ts';
import type { BuildInfo, BuildLogEntry } from '../../protocol/api/template-build.ts';
import { archiveOf, readDefinition, stepsOf } from './definition.ts';

type Template = { templateID: string; builds: { buildID: string }[] };
type Registered = { templateID: string; buildID: string };
type Platform = { request: PlatformRequest; follow: PlatformFollow };

const options = { public: { type: 'boolean' }, 'no-cache': { type: 'boolean' }, json: { type: 'boolean' } } as const;

/**
 * `atoll template build` and `add`: builds a folder with a template.json, the user's own or one that comes with Atoll.
 */
export function templateBuildCommands(
  request: PlatformRequest,
  follow: PlatformFollow,
  shippedFolder: (name: string) => string | undefined,
): Command[] {
  return [
    {
      name: 'template build',
      usage: 'FOLDER [--public] [--no-cache] [--json]',
      summary: 'Builds the template that a folder with template.json defines',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, options, ['FOLDER']);
        const folder = resolve(positionals[0] ?? '.');
        return buildFolder({ request, follow }, terminal, folder, {
          isPublic: values.public,
          force: values['no-cache'],
          json: values.json,
        });
      },
    },
    {
      name: 'template add',
      usage: 'NAME [--no-cache] [--json]',
      summary: 'Builds a template that comes with Atoll, and lets every team use it',
      async run(args, terminal) {
        const { 'no-cache': noCache, json } = options;
        const { values, positionals } = parseArguments(args, { 'no-cache': noCache, json }, ['NAME']);
        const name = positionals[0] ?? '';
        const folder = shippedFolder(name);
        if (folder === undefined)
          throw new AtollError(
            'not_found',
            `No template ${name} comes with Atoll; \`template build\` builds one of yours.`,
          );
        return buildFolder({ request, follow }, terminal, folder, {
          isPublic: true,
          force: values['no-cache'],
          json: values.json,
        });
      },
    },
    {
      name: 'template log',
      usage: '[--json] TEMPLATE',
      summary: "Shows the log of a template's newest build, until that has ended",
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, { json: { type: 'boolean' } }, ['TEMPLATE']);
        const { templateID, builds } = (await request(
          'GET',
          `/templates/${encodeURIComponent(positionals[0] ?? '')}`,
        )) as Template;
        const [newest] = builds;
        if (!newest) throw new AtollError('not_found', `No build of ${positionals[0]} was begun yet.`);
        const show = (entry: BuildLogEntry) => terminal.out(`${values.json ? JSON.stringify(entry) : entry.message}\n`);
        const build = { templateID, buildID: newest.buildID };
        return (await showToEnd({ request, follow }, terminal, build, show)) ? 0 : 1;
      },
    },
  ];
}

async function buildFolder(
  { request, follow }: Platform,
  terminal: Terminal,
  folder: string,
  {
    isPublic = false,
    force = false,
    json,
  }: { isPublic?: boolean | undefined; force?: boolean | undefined; json: boolean | undefined },
): Promise<number> {
  const definition = readDefinition(folder);
  if (definition.fromMachine)
    throw new AtollError(
      'invalid',
      `${folder} is made from this machine's own packages, which only the start of the platform does.`,
    );
  const { name = basename(folder), fromTemplate, fromImage, cpuCount, memoryMB, startCmd, readyCmd } = definition;
  const { templateID, buildID } = (await request('POST', '/v3/templates', { name, cpuCount, memoryMB })) as Registered;
  const filesHash = definition.files ? await upload(request, templateID, folder, definition.files) : undefined;
  const steps = stepsOf(definition).map(step => (step.type === 'COPY' ? { ...step, filesHash } : step));
  const start = { fromTemplate, fromImage, steps, startCmd, readyCmd, force };
  await request('POST', `/v2/templates/${templateID}/builds/${buildID}`, start);
  const show = ({ message }: BuildLogEntry) => terminal.err(`${message}\n`);
  const ended = await showToEnd({ request, follow }, terminal, { templateID, buildID }, show);
  if (ended && isPublic) await request('PATCH', `/templates/${templateID}`, { public: true });
  if (json) terminal.out(jsonText(await request('GET', statusOf({ templateID, buildID }))));
  else if (ended) terminal.out(`${name}\n`);
  return ended ? 0 : 1;
}

/** The API path that tells how a build went, without its log. */
function statusOf({ templateID, buildID }: Registered): string {
  return `/templates/${templateID}/builds/${buildID}/status?limit=0`;
}

/** Sends the files as one archive, unless the platform has it already. The same files give the same archive. */
async function upload(request: PlatformRequest, templateId: string, folder: string, files: string[]): Promise<string> {
  const archive = await archiveOf(folder, files);
  const hash = createHash('sha256').update(archive).digest('hex');
  const slot = (await request('GET', `/templates/${templateId}/files/${hash}`)) as { present: boolean; url: string };
  if (slot.present) return hash;
  const answer = await fetch(slot.url, { method: 'PUT', body: archive });
  if (!answer.ok)
    throw new AtollError('internal', `The files could not be uploaded: ${answer.status} ${await answer.text()}`);
  return hash;
}

/**
 * Shows the build's log until it has ended. True if the build is ready; otherwise the reason went to standard error.
 */
async function showToEnd(
  { request, follow }: Platform,
  terminal: Terminal,
  { templateID, buildID }: Registered,
  show: (entry: BuildLogEntry) => void,
): Promise<boolean> {
  const path = `/templates/${templateID}/builds/${buildID}`;
  for await (const entry of follow(`${path}/logs/stream`, {})) show(entry as BuildLogEntry);
  const { status, reason } = (await request('GET', statusOf({ templateID, buildID }))) as BuildInfo;
  if (status === 'ready') return true;
  const place =
    reason?.step === undefined ? '' : /^\d+$/.test(reason.step) ? ` at step ${reason.step}` : ` (${reason.step})`;
  terminal.err(`The build failed${place}: ${reason?.message ?? 'no reason was given'}\n`);
  return false;
}
