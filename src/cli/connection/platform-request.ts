/**
 * Calls the running platform's REST API with the installation's key, and answers the JSON body; undefined for an empty
 * one. `onHeaders` receives the headers of a successful answer.
 */
export type PlatformRequest = (
  method: 'GET' | 'DELETE' | 'POST' | 'PATCH',
  path: string,
  body?: unknown,
  onHeaders?: (headers: Headers) => void,
) => Promise<unknown>;

/**
 * The events of a stream of the running platform's REST API, until it is over; when a connection ends, another
 * continues after the last event.
 */
export type PlatformFollow = (path: string, query: Record<string, string>) => AsyncGenerator<unknown>;

/** All items of a list of the running platform, however many pages it has. */
export type PlatformList = (path: string) => Promise<unknown[]>;
