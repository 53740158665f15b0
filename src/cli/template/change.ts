import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { jsonOption, parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import type { PlatformRequest } from '../connection/platform-request.ts';
import { confirm, jsonText, momentText, show } from '../terminal/table.ts';
import { definitionFile } from './definition.ts';

type Tag = { tag: string; buildID: string; createdAt: string };

const pathOf = (name: string | undefined) => `/templates/${encodeURIComponent(name ?? '')}`;

/** Commands that begin a template, or change one that is built. */
export function templateChangeCommands(request: PlatformRequest): Command[] {
  return [
    {
      name: 'template init',
      usage: '[--json] [FOLDER]',
      summary: 'Begins a template: writes a template.json for `template build` into a folder',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, jsonOption, ['[FOLDER]']);
        const folder = resolve(positionals[0] ?? '.');
        const file = join(folder, definitionFile);
        if (existsSync(file)) throw new AtollError('conflict', `${file} is there already.`);
        mkdirSync(folder, { recursive: true });
        writeFileSync(file, jsonText(beginning(basename(folder))));
        terminal.out(values.json ? jsonText({ path: file }) : `${file}\n`);
        return 0;
      },
    },
    ...tagCommands(request),
    {
      name: 'template publish',
      usage: '[--private] [--json] TEMPLATE',
      summary: 'Lets every team use a template; --private: its own team alone again',
      async run(args, terminal) {
        const options = { private: { type: 'boolean' }, json: { type: 'boolean' } } as const;
        const { values, positionals } = parseArguments(args, options, ['TEMPLATE']);
        const published = (await request('PATCH', `/v2${pathOf(positionals[0])}`, { public: !values.private })) as {
          names: string[];
        };
        terminal.out(values.json ? jsonText(published) : `${published.names.join('\n')}\n`);
        return 0;
      },
    },
    {
      name: 'template delete',
      usage: '[--json] TEMPLATE',
      summary: 'Deletes a template with its builds, unless sandboxes come from it',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, jsonOption, ['TEMPLATE']);
        await request('DELETE', pathOf(positionals[0]));
        confirm(terminal, values.json, { templateID: positionals[0] }, 'Deleted.');
        return 0;
      },
    },
  ];
}

function tagCommands(request: PlatformRequest): Command[] {
  return [
    {
      name: 'template tags',
      usage: '[--json] TEMPLATE',
      summary: 'Lists the tags of a template and the builds that they select',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, { json: { type: 'boolean' } }, ['TEMPLATE']);
        const tags = (await request('GET', `${pathOf(positionals[0])}/tags`)) as Tag[];
        const rows = tags.map(({ tag, buildID, createdAt }) => [tag, buildID, momentText(terminal, createdAt)]);
        show(terminal, values.json, tags, [['TAG', 'BUILD', 'ASSIGNED'], ...rows]);
        return 0;
      },
    },
    {
      name: 'template tag',
      usage: '[--remove] [--json] TEMPLATE TAG...',
      summary: 'Gives the build that NAME or NAME:TAG selects further tags; --remove takes tags of a template away',
      async run(args, terminal) {
        const options = { remove: { type: 'boolean' }, ...jsonOption } as const;
        const { values, positionals } = parseArguments(args, options, ['TEMPLATE', '<TAG...>']);
        const [name = '', ...tags] = positionals;
        if (values.remove) {
          await request('DELETE', '/templates/tags', { name, tags });
          confirm(terminal, values.json, { name, tags }, 'Removed.');
          return 0;
        }
        const assigned = await request('POST', '/templates/tags', { target: name, tags });
        confirm(terminal, values.json, assigned, 'Tagged.');
        return 0;
      },
    },
  ];
}

function beginning(name: string): object {
  return {
    name,
    fromTemplate: 'base',
    cpuCount: 2,
    memoryMB: 1024,
    steps: [{ type: 'RUN', args: ['pip install --no-cache-dir requests'] }],
  };
}
