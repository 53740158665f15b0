/**
 * The closed list of what can go wrong, and the HTTP status that each becomes at the edge of the platform. A failure of
 * the world is an `AtollError`; a broken invariant is an assertion and means a bug.
 */
export const statusOf = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  not_acceptable: 406,
  conflict: 409,
  /** The world is not in the state that the call needs. */
  precondition: 400,
  too_large: 413,
  rate_limited: 429,
  canceled: 499,
  internal: 500,
  /** For interfaces that require this very word; ours say what they know. */
  unknown: 500,
  unimplemented: 501,
  unavailable: 503,
  deadline_exceeded: 504,
  no_space: 507,
} as const;

/** A code of the closed list. */
export type ErrorCode = keyof typeof statusOf;

/** Everything about an error besides its code and message. */
type ErrorOptions = {
  /** Facts for the log, never shown to the caller. */
  fields?: Record<string, unknown>;
  /** Machine-readable detail for the caller (`error_code` on the wire), e.g. `sandbox_capacity_unavailable`. */
  detail?: string;
  /** Seconds after which a retry makes sense. Only set where a retry can succeed by itself. */
  retryAfterSeconds?: number;
  /**
   * The change may have happened all the same: clients are answered 500, because they take 503 as a promise that it did
   * not.
   */
  mayHaveChanged?: boolean;
  /** Its message is for the log; callers of the API only learn that something failed. */
  forLog?: boolean;
  cause?: unknown;
};

/** An error of the world: `message` is for the caller and says what was asked, what was wrong and what to do. */
export class AtollError extends Error {
  override readonly name = 'AtollError';
  readonly code: ErrorCode;
  readonly fields: Record<string, unknown>;
  readonly detail: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly mayHaveChanged: boolean;
  readonly forLog: boolean;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.fields = options.fields ?? {};
    this.detail = options.detail;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.mayHaveChanged = options.mayHaveChanged ?? false;
    this.forLog = options.forLog ?? false;
  }

  get status(): number {
    return this.mayHaveChanged ? statusOf.unknown : statusOf[this.code];
  }
}

/** Throws when an invariant does not hold. The message is for the developer who reads the crash. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`invariant broken: ${message}`);
}

/** The text of anything that was thrown; where the undoing failed as well, the text of both failures. */
export function messageOf(error: unknown): string {
  if (error instanceof SuppressedError) return `${messageOf(error.suppressed)}; and then: ${messageOf(error.error)}`;
  return error instanceof Error ? error.message : String(error);
}

/** The name of a failed system call's error, e.g. `ENOENT`; empty for anything else that was thrown. */
export function systemCodeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** Says whether a file or process is really gone; false where the system could not find out. */
export function isGone(error: unknown): boolean {
  return ['ENOENT', 'ESRCH', 'ENOTDIR'].includes(systemCodeOf(error));
}

/** The text of anything that was thrown and of what caused it, for the log. */
export function causesOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause === undefined ? messageOf(error) : `${messageOf(error)} (${causesOf(cause)})`;
}
