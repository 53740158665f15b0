/** An unsuccessful answer of the API: its message is for the person who asked. */
export class ApiFailure extends Error {
  readonly status: number;
  /** What went wrong, for programs; empty if unknown. */
  readonly code: string;

  constructor(status: number, message: string, code = '') {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Members of a query; undefined and empty ones are left out. */
export type Query = Record<string, string | number | boolean | undefined>;

/** A request to the API. */
export type Ask = {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The team of the request; absent: the person, or the operator. */
  team?: string | undefined;
  query?: Query | undefined;
  body?: unknown;
  /** Token for a volume's content, which a session can't read. */
  bearer?: string;
  signal?: AbortSignal | undefined;
};

/** Sends a request to the API as the signed-in user. Throws `ApiFailure` for an unsuccessful answer. */
export async function ask(path: string, options: Ask = {}): Promise<Response> {
  const { method = 'GET', team, body, bearer, signal } = options;
  const raw = body instanceof Blob;
  const headers: Record<string, string> = {
    ...(team !== undefined && { 'X-Team-ID': team }),
    ...(bearer !== undefined && { Authorization: `Bearer ${bearer}` }),
    ...(body !== undefined && !raw && { 'Content-Type': 'application/json' }),
  };
  const response = await fetch(withQuery(path, options.query), {
    method,
    headers,
    ...(body !== undefined && { body: raw ? body : JSON.stringify(body) }),
    ...(signal && { signal }),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new ApiFailure(0, 'The platform does not answer. It may be starting again; this page tries again by itself.');
  });
  if (!response.ok) throw await failureOf(response);
  return response;
}

/** The JSON of an answer; undefined if it has none. */
export async function askJson<T>(path: string, options: Ask = {}): Promise<T> {
  const text = await (await ask(path, options)).text();
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

/** The error in an answer. */
export async function failureOf(response: Response): Promise<ApiFailure> {
  const body = (await response.json().catch(() => null)) as { message?: unknown; error_code?: unknown } | null;
  const message = typeof body?.message === 'string' ? body.message : `The platform answered ${response.status}`;
  return new ApiFailure(response.status, message, typeof body?.error_code === 'string' ? body.error_code : '');
}

/** `path` with the set members of a query. */
export function withQuery(path: string, query: Query = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') params.set(name, String(value));
  const text = params.toString();
  return text === '' ? path : `${path}?${text}`;
}
