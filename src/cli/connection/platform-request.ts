/**
 * Calls the running platform's REST API, with the installation's key, and answers the JSON body; undefined for an empty
 * one.
 */
export type PlatformRequest = (
  method: 'GET' | 'DELETE' | 'POST' | 'PATCH',
  path: string,
  body?: unknown,
) => Promise<unknown>;

/** Every item of a list of the running platform, however many pages it has. */
export type PlatformList = (path: string) => Promise<unknown[]>;
