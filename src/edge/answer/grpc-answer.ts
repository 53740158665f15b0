import { headBytes } from '../../http1/head-bytes.ts';
import type { Answer } from './answer.ts';

/** The status codes of gRPC that the edge answers with (grpc/doc/statuscodes.md). */
const code = {
  internal: 13,
  permissionDenied: 7,
  resourceExhausted: 8,
  unavailable: 14,
  unauthenticated: 16,
  unimplemented: 12,
  invalidArgument: 3,
  unknown: 2,
} as const;

/** What each status means to a gRPC client. Only `unavailable` may always be retried. */
const codes: Readonly<Record<number, number>> = {
  400: code.invalidArgument,
  401: code.unauthenticated,
  403: code.permissionDenied,
  404: code.unimplemented,
  409: code.unavailable,
  429: code.resourceExhausted,
  431: code.resourceExhausted,
  500: code.internal,
  501: code.unimplemented,
  502: code.unavailable,
  503: code.unavailable,
  504: code.unavailable,
};

/**
 * The bytes of an answer to a gRPC call. A gRPC client looks for the outcome in `grpc-status`, in a response without a
 * body (`Trailers-Only`).
 */
export function grpcAnswerBytes({ status, body }: Answer): Buffer {
  return headBytes('HTTP/1.1 200 OK', [
    { name: 'Content-Type', value: 'application/grpc' },
    { name: 'Grpc-Status', value: String(codes[status] ?? code.unknown) },
    { name: 'Grpc-Message', value: percentEncoded(body?.message ?? '') },
    { name: 'Content-Length', value: '0' },
  ]);
}

/** Text in the form of `grpc-message`: UTF-8 in which everything but printable ASCII is percent-encoded. */
function percentEncoded(text: string): string {
  return [...Buffer.from(text)]
    .map(byte =>
      byte >= 0x20 && byte <= 0x7e && byte !== 0x25
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
    )
    .join('');
}
