import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { newUuid } from '../../base/id.ts';
import { randomHex } from '../../base/crypto/secret.ts';
import { readOrMake } from '../../base/small-file.ts';

const seedBytes = 32;

/** Facts that an installation keeps all its life. */
export type Identity = {
  nodeId: string;
  /** The source of the sandboxes' tokens: whoever has it can enter every sandbox. */
  seed: Uint8Array;
  /** The operator's `X-Admin-Token`. */
  adminToken: string;
  /** Reads the operator's metrics, nothing else. */
  metricsToken: string;
};

/** Reads the installation's identity; the first start makes it. */
export function readIdentity(dataDir: string): Identity {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const nodeId = readOrMake(join(dataDir, 'node-id'), () => newUuid());
  const seed = Buffer.from(
    readOrMake(join(dataDir, 'seed'), () => randomBytes(seedBytes).toString('hex')),
    'hex',
  );
  if (seed.length !== seedBytes) {
    throw new AtollError(
      'internal',
      `${join(dataDir, 'seed')} is damaged: it must hold ${seedBytes * 2} hex digits. Restore it from a backup; ` +
        "without it every sandbox's tokens change.",
    );
  }
  const token = (name: string) => readOrMake(join(dataDir, name), () => randomHex(seedBytes));
  return { nodeId, seed, adminToken: token('admin-token'), metricsToken: token('metrics-token') };
}
