import { S3Client } from 'bun';
import { AtollError, systemCodeOf } from '../base/error.ts';
import type { BlobObject, BlobStore } from '../protocol/blob.ts';
import { explained } from './errors.ts';

/** The place of a bucket, and our credentials there. */
export type S3Place = {
  bucket: string;
  /** All keys start with it; empty, or without slashes around it. */
  prefix: string;
  /** Absent: AWS, chosen by the region. */
  endpoint: string | undefined;
  region: string;
  keyId: string;
  secret: string;
};

/** Most objects of one page of a list. Source: S3 API, ListObjectsV2. */
const pageMax = 1000;
/** A store's answers for an object that is not there. */
const missing = new Set(['NoSuchKey', 'NotFound', 'ENOENT']);

/** A bucket of a store that speaks S3. */
export function s3Store({ bucket, prefix, endpoint, region, keyId, secret }: S3Place): BlobStore {
  const place = `s3://${bucket}${prefix && `/${prefix}`}${endpoint === undefined ? '' : ` at ${endpoint}`}`;
  const client = new S3Client({
    bucket,
    region,
    accessKeyId: keyId,
    secretAccessKey: secret,
    ...(endpoint !== undefined && { endpoint }),
  });
  const base = prefix && `${prefix}/`;
  const attempt = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw explained(place, error);
    }
  };
  const isThere = async (key: string) => {
    const page = await client.list({ prefix: base + key, maxKeys: 1 });
    return page.contents?.find(object => object.key === base + key);
  };
  return {
    place,
    // One attempt only: the remains of a broken write could replace the object that a second attempt has written.
    put: (key, bytes) => attempt(async () => void (await client.write(base + key, bytes, { retry: 0 }))),
    get: key =>
      attempt(async () => {
        try {
          return await client.file(base + key).bytes();
        } catch (error) {
          if (!missing.has(systemCodeOf(error))) throw error;
          throw new AtollError('not_found', `${key} is not in the store ${place}`);
        }
      }),
    // Uses a list: the answer to HEAD has no body, so it never says why it failed.
    head: key => attempt(async () => (await isThere(key))?.size ?? null),
    remove: key => attempt(() => client.delete(base + key)),
    list: start => list(client, base, start, attempt),
    presign: (key, method, seconds) => client.presign(base + key, { method, expiresIn: seconds }),
  };
}

async function* list(
  client: S3Client,
  base: string,
  start: string,
  attempt: <T>(work: () => Promise<T>) => Promise<T>,
): AsyncGenerator<BlobObject> {
  for (let token: string | undefined; ;) {
    const page = await attempt(() =>
      client.list({ prefix: base + start, maxKeys: pageMax, ...(token !== undefined && { continuationToken: token }) }),
    );
    for (const { key, size, lastModified } of page.contents ?? [])
      yield {
        key: key.slice(base.length),
        bytes: size ?? 0,
        changedAtMs: lastModified === undefined ? Date.now() : Date.parse(lastModified),
      };
    token = page.nextContinuationToken;
    if (!page.isTruncated || token === undefined) return;
  }
}
