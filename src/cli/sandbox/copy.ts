import { constants, createWriteStream, openAsBlob, statSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { AtollError } from '../../base/error.ts';
import { commandLineDetail, jsonOption, parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import { jsonText } from '../terminal/table.ts';
import type { Connect } from '../connection/connection.ts';
import { withSandbox } from './open.ts';

/** `atoll sandbox cp`: a file into a sandbox, or out of one. */
export function copyCommand(connect: Connect): Command {
  return {
    name: 'sandbox cp',
    usage: '[--json] SOURCE DESTINATION',
    summary: 'Copies a file; one of both is SANDBOX_ID:PATH. A path that ends in / is a directory',
    async run(args, terminal) {
      const { values, positionals } = parseArguments(args, jsonOption, ['SOURCE', 'DESTINATION']);
      const [source, destination] = [placeOf(positionals[0] ?? ''), placeOf(positionals[1] ?? '')];
      const written = await copy(connect, source, destination);
      if (values.json) terminal.out(jsonText(written));
      return 0;
    },
  };
}

/** The written file, as the API describes it. */
type Written = { name: string; type: string; path: string };

async function copy(connect: Connect, source: Place, destination: Place): Promise<Written> {
  if (source.sandboxId === undefined && destination.sandboxId !== undefined)
    return upload(connect, source.path, destination.sandboxId, destination.path);
  if (source.sandboxId !== undefined && destination.sandboxId === undefined)
    return download(connect, source.sandboxId, source.path, destination.path);
  throw new AtollError('invalid', 'Exactly one of both must be in a sandbox: SANDBOX_ID:PATH', {
    detail: commandLineDetail,
  });
}

type Place = { sandboxId: string | undefined; path: string };

/** IDs have no slash, and a local file with a colon can be named `./a:b`. */
function placeOf(text: string): Place {
  const match = /^([a-z0-9]+):(.*)$/.exec(text);
  return match ? { sandboxId: match[1], path: match[2] ?? '' } : { sandboxId: undefined, path: text };
}

async function upload(connect: Connect, from: string, sandboxId: string, to: string): Promise<Written> {
  if (statSync(from, { throwIfNoEntry: false })?.isDirectory())
    throw new AtollError('invalid', `${from} is a directory; pack it, copy the archive and unpack it inside.`);
  // A blob is opened only when it is sent; without this check, a paused sandbox would have been resumed for nothing by
  // then.
  await access(from, constants.R_OK).catch(() => {
    throw new AtollError('not_found', `${from} can't be read.`);
  });
  const content = await openAsBlob(from);
  const path = to === '' || to.endsWith('/') ? `${to}${basename(from)}` : to;
  const written = await withSandbox(connect, sandboxId, sandbox =>
    sandbox.files.write(path, content, { requestTimeoutMs: 0 }),
  );
  return { name: written.name, type: 'file', path: written.path };
}

async function download(connect: Connect, sandboxId: string, from: string, to: string): Promise<Written> {
  const isDirectory = to.endsWith('/') || statSync(to, { throwIfNoEntry: false })?.isDirectory();
  const path = isDirectory ? join(to, basename(from)) : to;
  await withSandbox(connect, sandboxId, async sandbox => {
    const content = await sandbox.files.read(from, { format: 'stream', requestTimeoutMs: 0 });
    await pipeline(Readable.from(content), createWriteStream(path));
  });
  return { name: basename(path), type: 'file', path: resolve(path) };
}
