import { createHash } from 'node:crypto';
import { closeSync, openSync, readdirSync, readSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { AtollError } from '../../../base/error.ts';
import { readIfThere, writeWhole } from '../../../base/small-file.ts';

/** How much of an agent's file is read at a time. */
const partBytes = 1 << 20;

/** The copies of the agent on this machine, each by a digest of its content. */
export type Agents = {
  /** The digest of the copy that new sandboxes start with. */
  readonly present: string;
  /** The digests of the others: sandboxes run from them, or may come from a machine whose sandboxes do. */
  readonly earlier: readonly string[];
  /** The digest of a copy. Errors: `precondition` if it is not there any more. */
  digestOf(directory: string): string;
  /** The copy with this digest. Errors: `precondition` if this machine has none. */
  require(digest: string): string;
};

/** Reads the copies in `folder`; `present` is the current one. No others are added while the node runs. */
export async function readAgents(folder: string, present: string, cacheFile: string): Promise<Agents> {
  const digests = await digestsOf(folder, cacheFile);
  const digestOf = (directory: string) => {
    const digest = digests.get(basename(directory));
    if (digest === undefined)
      throw new AtollError(
        'precondition',
        'the build of the agent that its memory needs is not on this machine any more',
      );
    return digest;
  };
  const own = digestOf(present);
  return {
    present: own,
    earlier: [...new Set(digests.values())].filter(digest => digest !== own),
    digestOf,
    require(digest) {
      if (digest === own) return present;
      const [name] = [...digests].find(([, known]) => known === digest) ?? [];
      if (name === undefined)
        throw new AtollError('precondition', 'its memory is of another build of the agent than this machine has');
      return join(folder, name);
    },
  };
}

/**
 * Digests by the names of the copies. Copies that were read before are not read again: a name changes with the files
 * in it.
 */
async function digestsOf(folder: string, cacheFile: string): Promise<Map<string, string>> {
  const lines = (readIfThere(cacheFile) ?? '').split('\n').filter(Boolean);
  const known = new Map(
    lines.map(line => {
      const [name = '', digest = ''] = line.split(' ');
      return [basename(name), digest];
    }),
  );
  const digests = new Map<string, string>();
  for (const name of readdirSync(folder).toSorted())
    digests.set(name, known.get(name) ?? (await agentDigest(join(folder, name))));
  const found = [...digests].map(line => `${line.join(' ')}\n`).join('');
  if (found !== `${lines.join('\n')}\n`) writeWhole(cacheFile, found);
  return digests;
}

/** A digest of the content of a copy of the agent: machines have copies of their own, made at other times. */
export async function agentDigest(directory: string): Promise<string> {
  const hash = createHash('sha256');
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile());
  for (const file of files.map(({ parentPath, name }) => join(parentPath, name)).toSorted()) {
    hash.update(`${file.slice(directory.length)}\0`);
    await eachPart(file, part => void hash.update(part));
  }
  return hash.digest('hex');
}

/**
 * Reads a file of the agent through one piece of memory, in two thirds of a stream's processor time: each first start
 * does this. Other work gets its turn between two parts.
 */
async function eachPart(path: string, take: (part: Buffer) => void): Promise<void> {
  const memory = Buffer.allocUnsafe(partBytes);
  const file = openSync(path, 'r');
  try {
    for (let read = readSync(file, memory); read > 0; read = readSync(file, memory)) {
      take(memory.subarray(0, read));
      await setImmediate();
    }
  } finally {
    closeSync(file);
  }
}
