/** Asks the running platform's REST API, with the installation's key, and answers the JSON body; undefined for an empty one. */
export type PlatformRequest = (method: 'GET' | 'DELETE' | 'POST' | 'PATCH', path: string, body?: unknown) => Promise<unknown>;
