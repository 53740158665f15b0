import { agentPort } from '../../protocol/agent.ts';

/** An answer that the edge gives itself. */
export type Answer = {
  readonly status: number;
  /** The JSON body for clients; `message` is also what the page for people shows. Null: no body. */
  readonly body: AnswerBody | null;
  readonly headers: Readonly<Record<string, string>>;
  /** What the page tells people in addition; clients must not depend on it. */
  readonly about?: 'paused' | 'full';
};

/** What clients get as JSON: a message for people, the status again, and facts of the case. */
export type AnswerBody = { readonly message: string; readonly code: number } & Readonly<
  Record<string, string | number>
>;

/** A sandbox and one of its ports. */
export type SandboxPort = { readonly sandboxId: string; readonly port: number };

/** An answer to a request that names no sandbox, or none that could be read. */
export function plainAnswer(status: number, message: string, more: Readonly<Record<string, string>> = {}): Answer {
  return { status, body: { message, ...more, code: status }, headers: {} };
}

/** An answer about a port of a sandbox. Its members are what the published clients read. */
export function sandboxAnswer(
  status: number,
  message: string,
  { sandboxId, port }: SandboxPort,
  more: Readonly<Record<string, string | number>> = {},
): Answer {
  return { status, body: { sandboxId, message, ...more, code: status }, headers: readableBy(port) };
}

/** Clients compare the text and code of the two 502 answers literally: only these mean that a sandbox is gone. */
export function sandboxNotFound(to: SandboxPort): Answer {
  return sandboxAnswer(502, 'The sandbox was not found', to);
}

/** Clients can't tell a paused sandbox from one that is gone; people can. */
export function sandboxPaused(to: SandboxPort): Answer {
  return { ...sandboxNotFound(to), about: 'paused' };
}

/** The sandbox runs, but nothing listens on the port. Clients compare this answer too, see above. */
export function portNotOpen(to: SandboxPort): Answer {
  return sandboxAnswer(502, 'The sandbox is running but port is not open', to, { port: to.port });
}

/** The sandbox has as many requests in flight as one sandbox may have. */
export function tooManyConnections(to: SandboxPort, connectionLimit: number): Answer {
  return sandboxAnswer(429, `The sandbox has its limit of ${connectionLimit} connections open`, to, {
    connectionLimit,
  });
}

/** The team's sandboxes have as many requests in flight as one team may have. */
export function tooManyOfTeam(to: SandboxPort, connectionLimit: number): Answer {
  return sandboxAnswer(429, `The sandboxes of this team have their limit of ${connectionLimit} connections open`, to, {
    connectionLimit,
  });
}

/** For a request that arrives when every place is taken. This passes by itself. */
export function crowded(to: SandboxPort): Answer {
  const answer = sandboxAnswer(503, 'There are too many requests under way; try again in a moment', to);
  return { ...answer, headers: { ...answer.headers, ...retrySoon } };
}

/** The API has as many requests in flight as it may have, or as one address may have. This passes by itself. */
export function apiCrowded(): Answer {
  return { ...plainAnswer(503, 'The API has too many requests under way; try again in a moment'), headers: retrySoon };
}

const retrySoon = { 'Retry-After': '1' };

/** The sandbox is paused and can't wake until there is room. How large the machine is, is no business of visitors. */
export function noRoomToWake(to: SandboxPort, retryAfterSeconds = 1): Answer {
  const text = 'The sandbox is paused, and there is no room to resume it now; try again later';
  const answer = sandboxAnswer(503, text, to);
  return { ...answer, headers: { ...answer.headers, 'Retry-After': `${retryAfterSeconds}` }, about: 'full' };
}

/** A part of the platform does not answer right now; it is restarted within seconds. */
export function unreachable(to: SandboxPort): Answer {
  const answer = sandboxAnswer(503, 'The sandbox could not be reached; try again in a moment', to);
  return { ...answer, headers: { ...answer.headers, 'Retry-After': '1' } };
}

/** The same answer whether or not the sandbox exists. */
export function internalRoute(path: string): Answer {
  return {
    status: 404,
    body: { message: 'This path is not served to clients', path, code: 404 },
    headers: readableBy(agentPort),
  };
}

/** Lets scripts of any origin read what the edge says about the agent: the browser clients need it. */
function readableBy(port: number): Readonly<Record<string, string>> {
  return port === agentPort ? { 'Access-Control-Allow-Origin': '*' } : {};
}
