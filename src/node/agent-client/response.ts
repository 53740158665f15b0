import { AtollError } from '../../base/error.ts';
import { ResponseReader } from '../../http1/response-reader.ts';

/** Bytes of a response's head: the agent sends a few short fields. */
const limits = { headBytesMax: 16 << 10, fieldsMax: 64, interimsMax: 8 } as const;
/** Bytes of the body of a response other than 200. */
const refusalBytesMax = 500;

/**
 * Takes a piece of the body of a 200, valid only during the call. `enough` ends the request: the rest is not needed.
 */
export type TakeData = (piece: Uint8Array) => 'more' | 'enough';

/** What came of a request. */
export type AgentOutcome = {
  /** Undefined if the connection ended before a head came. */
  readonly status: number | undefined;
  /** Whether the response was complete, and not only its connection ended. */
  readonly isWhole: boolean;
  /** The body of a response other than 200, as far as it came: bounded, and a stranger's text. */
  readonly refusal: string | undefined;
};

/** Reads one response of an agent as its bytes come. */
type AgentResponseReader = {
  /**
   * Takes the next bytes. Answers whether the response is over now. Errors: `internal` for what is not a response, and
   * those of `onData`.
   */
  take(bytes: Buffer): boolean;
  /** What has come of the response so far; `isOver`: it is complete, and not merely cut off with its connection. */
  outcome(isOver: boolean): AgentOutcome;
};

/** Makes the reader of one response. It stays within bounds, whatever the sandbox sends. */
export function createResponseReader(onData: TakeData): AgentResponseReader {
  let status: number | undefined;
  let isEnough = false;
  const refusal: Buffer[] = [];
  let refusalLeft = refusalBytesMax;
  const keep = (piece: Uint8Array) => {
    if (refusalLeft === 0) return;
    const kept = Buffer.from(piece.subarray(0, refusalLeft));
    refusalLeft -= kept.length;
    refusal.push(kept);
  };
  const reader = new ResponseReader(
    {
      head: head => void (status = head.status),
      data(piece) {
        if (status !== 200) {
          keep(piece);
          isEnough = refusalLeft === 0;
        } else if (!isEnough && onData(piece) === 'enough') isEnough = true;
      },
    },
    limits,
  );
  return {
    take(bytes) {
      const fault = reader.read(bytes);
      if (fault !== undefined) throw new AtollError('internal', `the agent did not answer in valid HTTP/1.1: ${fault}`);
      return reader.over || isEnough;
    },
    outcome: isOver => ({
      status,
      isWhole: isOver || reader.close(),
      refusal:
        status === undefined || status === 200
          ? undefined
          : `the agent answered ${status}: ${Buffer.concat(refusal).toString()}`,
    }),
  };
}
