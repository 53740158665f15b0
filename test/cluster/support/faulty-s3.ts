import { type S3Server, startS3 } from '../../support/s3-server.ts';

/** The faults of a store. `down`: it ends connections without an answer; `cut`: an answer is too short. */
const faults = ['down', 'error', 'refused', 'full', 'not-found', 'other-bytes', 'cut'] as const;
type Fault = (typeof faults)[number];

const answers: Partial<Record<Fault, [status: number, code: string]>> = {
  error: [500, 'InternalError'],
  refused: [403, 'SignatureDoesNotMatch'],
  full: [507, 'InsufficientStorage'],
  'not-found': [404, 'NoSuchBucket'],
};

/** A real S3 server behind one that can misbehave on request. */
export type FaultyS3 = AsyncDisposable & {
  /** Of control. */
  settings: Record<string, string>;
  /** From now on, requests for objects with this method get this fault; all others get the real server's answer. */
  fail(fault: Fault, method: 'GET' | 'PUT'): void;
  work(): void;
};

/** Starts one on an address of this machine. */
export async function startFaultyS3(hostname: string): Promise<FaultyS3> {
  const real: S3Server = await startS3(hostname);
  let present: { fault: Fault; method: string } | undefined;
  const front = Bun.serve({
    hostname,
    port: 0,
    idleTimeout: 60,
    maxRequestBodySize: 64 << 20,
    async fetch(request, server) {
      const url = new URL(request.url);
      const body = request.body === null ? undefined : await request.bytes();
      // Housekeeping requests for the store itself still work: the fault concerns blobs.
      const isWrong = present?.method === request.method && url.pathname.includes('/blobs/');
      const fault = isWrong ? present?.fault : undefined;
      if (fault === 'down') {
        server.timeout(request, 1);
        await new Promise(() => {});
      }
      const [status, code] = (fault && answers[fault]) ?? [];
      if (status !== undefined)
        return new Response(`<Error><Code>${code}</Code></Error>`, {
          status,
          headers: { 'Content-Type': 'application/xml' },
        });
      const answer = await fetch(`${real.endpoint}${url.pathname}${url.search}`, {
        method: request.method,
        // The signature covers the requested host.
        headers: request.headers,
        ...(body && { body: body as Uint8Array<ArrayBuffer> }),
        decompress: false,
      });
      const bytes = await answer.bytes();
      if (fault === 'other-bytes') bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
      const given = fault === 'cut' ? bytes.subarray(0, bytes.length >> 1) : bytes;
      const headers = new Headers(answer.headers);
      if (request.method !== 'HEAD') headers.delete('Content-Length');
      return new Response(request.method === 'HEAD' ? null : (given as Uint8Array<ArrayBuffer>), {
        status: answer.status,
        headers,
      });
    },
  });
  return {
    settings: {
      ATOLL_STORE: `s3://${real.bucket}/clusters/one`,
      ATOLL_STORE_ENDPOINT: `http://${hostname}:${front.port}`,
      ATOLL_STORE_KEY_ID: real.keyId,
      ATOLL_STORE_SECRET: real.secret,
    },
    fail: (fault, method) => void (present = { fault, method }),
    work: () => void (present = undefined),
    async [Symbol.asyncDispose]() {
      await front.stop(true);
      await real[Symbol.asyncDispose]();
    },
  };
}
