import { createHash } from 'node:crypto';
import { closeSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { machine, release } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { readIfThere, writeWhole } from '../../../base/small-file.ts';
import type { MemoryFacts } from '../../../protocol/node.ts';
import type { CheckpointSupport } from '../keep/checkpoint-support.ts';

/** What of a file of the agent is read at a time. */
const partBytes = 1 << 20;

/** What memory that comes from elsewhere has to fit on this machine. `agent`: see `agentDigest`. */
export function memoryFactsOf(checkpoints: CheckpointSupport, agent: string): MemoryFacts {
  return {
    architecture: machine(),
    kernel: release(),
    criu: checkpoints.supported ? checkpoints.host.criu.version : null,
    cpuFlags: cpuFlags(readFileSync('/proc/cpuinfo', 'latin1')),
    agent,
  };
}

/** What the first processor can: x86 calls it flags, Arm features (proc(5)). */
export function cpuFlags(cpuinfo: string): string[] {
  const flags = /^(?:flags|Features)\s*:\s*(.*)$/m.exec(cpuinfo)?.[1] ?? '';
  return flags.split(/\s+/).filter(Boolean).toSorted();
}

/** A digest of the content of a copy of the agent: machines have copies of their own, from other times. */
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
 * does. Others have their turn between two parts.
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

/** The same, read again only where the copy is another one than at the last start: its name changes with its files. */
export async function knownAgentDigest(directory: string, cacheFile: string): Promise<string> {
  const [known, digest] = (readIfThere(cacheFile) ?? '').split(' ');
  if (known === directory && digest) return digest;
  const found = await agentDigest(directory);
  writeWhole(cacheFile, `${directory} ${found}`);
  return found;
}
