import type { Agent } from './agent.ts';

/** A route outside the Connect protocol. `open` ones check access themselves, or need none. */
export type Route = { open?: boolean; answer(agent: Agent, request: Request, url: URL): Response | Promise<Response> };

/** Routes by method and path, e.g. `GET /metrics`. */
export type Routes = ReadonlyMap<string, Route>;
