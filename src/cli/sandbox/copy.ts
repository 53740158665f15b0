import { createWriteStream, openAsBlob, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { AtollError } from '../../base/error.ts';
import { commandLineDetail, parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import type { Connect } from '../connection/connection.ts';
import { withSandbox } from './open.ts';

/** `atoll sandbox cp`: a file into a sandbox, or out of one. */
export function copyCommand(connect: Connect): Command {
  return {
    name: 'sandbox cp',
    usage: 'SOURCE DESTINATION',
    summary: 'Copies a file; one of both is SANDBOX_ID:PATH. A path that ends in / is a directory',
    async run(args) {
      const { positionals } = parseArguments(args, {}, ['SOURCE', 'DESTINATION']);
      const [source, destination] = [placeOf(positionals[0] ?? ''), placeOf(positionals[1] ?? '')];
      if (source.sandboxId === undefined && destination.sandboxId !== undefined)
        await upload(connect, source.path, destination.sandboxId, destination.path);
      else if (source.sandboxId !== undefined && destination.sandboxId === undefined)
        await download(connect, source.sandboxId, source.path, destination.path);
      else
        throw new AtollError('invalid', 'Exactly one of both must be in a sandbox: SANDBOX_ID:PATH', {
          detail: commandLineDetail,
        });
      return 0;
    },
  };
}

type Place = { sandboxId: string | undefined; path: string };

/** IDs have no slash, and files of this machine that have a colon can be named `./a:b`. */
function placeOf(text: string): Place {
  const match = /^([a-z0-9]+):(.*)$/.exec(text);
  return match ? { sandboxId: match[1], path: match[2] ?? '' } : { sandboxId: undefined, path: text };
}

async function upload(connect: Connect, from: string, sandboxId: string, to: string): Promise<void> {
  if (statSync(from, { throwIfNoEntry: false })?.isDirectory())
    throw new AtollError('invalid', `${from} is a directory; pack it, copy the archive and unpack it inside.`);
  const content = await openAsBlob(from).catch(() => {
    throw new AtollError('not_found', `${from} can't be read.`);
  });
  const path = to === '' || to.endsWith('/') ? `${to}${basename(from)}` : to;
  await withSandbox(connect, sandboxId, sandbox => sandbox.files.write(path, content, { requestTimeoutMs: 0 }));
}

async function download(connect: Connect, sandboxId: string, from: string, to: string): Promise<void> {
  const isDirectory = to.endsWith('/') || statSync(to, { throwIfNoEntry: false })?.isDirectory();
  await withSandbox(connect, sandboxId, async sandbox => {
    const content = await sandbox.files.read(from, { format: 'stream', requestTimeoutMs: 0 });
    await pipeline(Readable.from(content), createWriteStream(isDirectory ? join(to, basename(from)) : to));
  });
}
