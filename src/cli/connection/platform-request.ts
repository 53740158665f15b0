/**
 * Calls the running platform's REST API, with the installation's key, and answers the JSON body; undefined for an empty
 * one. `onHeaders` is told what else a good answer says.
 */
export type PlatformRequest = (
  method: 'GET' | 'DELETE' | 'POST' | 'PATCH',
  path: string,
  body?: unknown,
  onHeaders?: (headers: Headers) => void,
) => Promise<unknown>;

/**
 * What a stream of the running platform's REST API tells, until it is over; where a connection ends, another goes on
 * behind the last event.
 */
export type PlatformFollow = (path: string, query: Record<string, string>) => AsyncGenerator<unknown>;

/** Every item of a list of the running platform, however many pages it has. */
export type PlatformList = (path: string) => Promise<unknown[]>;
