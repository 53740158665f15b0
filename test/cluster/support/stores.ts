import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { withoutPostgres } from '../../api/postgres.ts';
import { type S3Server, startS3, withoutS3 } from '../../support/s3-server.ts';

/** Where a cluster keeps its store, and what can be seen of it from outside. */
type StoreKind = {
  name: string;
  skipped: string | undefined;
  /** Settings of control. */
  start(hostAddress: string): Promise<Record<string, string>>;
  stop(): Promise<void>;
};

/** A real S3 server that checks signatures. */
export function inS3(): StoreKind {
  let s3: S3Server | undefined;
  return {
    name: 'in S3',
    skipped: withoutPostgres() ?? withoutS3(),
    async start(hostAddress) {
      s3 = await startS3(hostAddress);
      return {
        ATOLL_STORE: `s3://${s3.bucket}/clusters/one`,
        ATOLL_STORE_ENDPOINT: s3.endpoint,
        ATOLL_STORE_KEY_ID: s3.keyId,
        ATOLL_STORE_SECRET: s3.secret,
      };
    },
    stop: async () => s3?.[Symbol.asyncDispose](),
  };
}

/** A directory that all control processes see; `folder` tells its path once it exists. */
export function inDirectory(): StoreKind & { folder(): string } {
  let folder = '';
  return {
    name: 'in a directory',
    skipped: withoutPostgres(),
    folder: () => folder,
    async start() {
      folder = mkdtempSync(join(tmpdir(), 'atoll-store-'));
      return { ATOLL_STORE: folder };
    },
    stop: async () => rmSync(folder, { recursive: true, force: true }),
  };
}
