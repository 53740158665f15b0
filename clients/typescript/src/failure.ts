/** An answer of the platform that is no success, or none at all. */
export class AtollFailure extends Error {
  override readonly name = 'AtollFailure';
  /** The operation that was asked for, e.g. `pauseSandbox`. */
  readonly operation: string;
  /** The answer's HTTP status; 0 where none came. */
  readonly status: number;
  /** What went wrong, for programs; empty where nothing is said. */
  readonly code: string;
  /** Where the platform says when to ask again. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    operation: string,
    message: string,
    facts: { status: number; code?: string; retryAfterSeconds?: number | undefined; cause?: unknown },
  ) {
    super(`${operation}: ${message}`, { cause: facts.cause });
    this.operation = operation;
    this.status = facts.status;
    this.code = facts.code ?? '';
    this.retryAfterSeconds = facts.retryAfterSeconds;
  }
}

/** The failure that an answer tells. */
export async function failureOf(operation: string, response: Response): Promise<AtollFailure> {
  const text = await response.text().catch(() => '');
  const { message, error_code: code } = told(text);
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  return new AtollFailure(operation, typeof message === 'string' ? message : `status ${response.status}`, {
    status: response.status,
    code: typeof code === 'string' ? code : '',
    retryAfterSeconds: Number.isFinite(seconds) ? seconds : undefined,
  });
}

function told(text: string): { message?: unknown; error_code?: unknown } {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null ? body : {};
  } catch {
    return {}; // somebody else on the way has answered
  }
}
