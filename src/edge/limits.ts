import type { PoolBounds } from './upstream-pool.ts';

/** Every bound of the edge. Times in milliseconds, sizes in bytes. */
export type EdgeLimits = {
  /** Client connections open at once; more are closed on arrival. */
  clientConnectionsMax: number;
  /** Requests and upgraded connections in flight into one sandbox; more are answered 429. */
  connectionsPerSandboxMax: number;
  requestHeadBytesMax: number;
  responseHeadBytesMax: number;
  headerLinesMax: number;
  /** Interim (1xx) responses before one final response. */
  interimResponsesMax: number;
  /** What a client may send ahead of the response to its last request before its socket is no longer read. */
  pipelineBytesMax: number;
  /** How much of a refused request's body is skipped to keep the connection; past it the connection is closed. */
  discardBytesMax: number;
  /** From a request's first byte to the end of its head. */
  headTimeoutMs: number;
  /** From accept to the first byte; includes the TLS handshake. */
  firstByteTimeoutMs: number;
  /** Between two requests of a connection. Longer than the clients keep idle connections. */
  keepAliveTimeoutMs: number;
  /** Without a byte in either direction during a request or on an upgraded connection. */
  streamIdleTimeoutMs: number;
  /** For a closing connection to take its last bytes. */
  lingerTimeoutMs: number;
  /**
   * How long a client that closed its sending side may see no response byte before the sandbox is told:
   * some clients only half-close, most are gone.
   */
  halfCloseGraceMs: number;
  /** Attempts to reach a port on which nothing listens yet, and the waits between them. */
  dialBackoffMs: readonly number[];
  dialTimeoutMs: number;
  /** For the TLS handshake with a sandbox's service. */
  handshakeTimeoutMs: number;
  /** For a paused sandbox to run again, a pause under way included. */
  wakeTimeoutMs: number;
  /** Idle connections kept to one port of one sandbox, and to the API: what a burst may leave for the next one. */
  idleUpstreamsPerPortMax: number;
  /** How many of them are kept for longer than `idleUpstreamTimeoutMs` where the server is our own. */
  idleOwnUpstreamsKept: number;
  /** Idle connections to sandboxes' ports are closed after this. Below the 5 s after which Node servers close theirs. */
  idleUpstreamTimeoutMs: number;
  /**
   * A request that must not be sent twice takes an idle connection only if it was used this recently:
   * a server may be closing an older one at this moment.
   */
  freshUpstreamMs: number;
  /** The same for connections to the agent and the API, whose servers don't close idle ones. */
  idleOwnUpstreamTimeoutMs: number;
};

export const defaultLimits: EdgeLimits = {
  clientConnectionsMax: 16_384,
  connectionsPerSandboxMax: 1024,
  requestHeadBytesMax: 65_536,
  responseHeadBytesMax: 131_072,
  headerLinesMax: 128,
  interimResponsesMax: 16,
  pipelineBytesMax: 65_536,
  discardBytesMax: 1_048_576,
  headTimeoutMs: 15_000,
  firstByteTimeoutMs: 60_000,
  keepAliveTimeoutMs: 650_000,
  streamIdleTimeoutMs: 3_600_000,
  lingerTimeoutMs: 5_000,
  halfCloseGraceMs: 200,
  dialBackoffMs: [100, 200, 300, 400],
  dialTimeoutMs: 10_000,
  handshakeTimeoutMs: 10_000,
  wakeTimeoutMs: 90_000,
  idleUpstreamsPerPortMax: 512,
  idleOwnUpstreamsKept: 16,
  idleUpstreamTimeoutMs: 4_000,
  freshUpstreamMs: 1_000,
  idleOwnUpstreamTimeoutMs: 120_000,
};

/** How connections to our own servers (the API, the agents) are kept, and how those to anything in a sandbox. */
export function poolBounds(limits: EdgeLimits, own: boolean): PoolBounds {
  return {
    idleMax: limits.idleUpstreamsPerPortMax,
    idleTimeoutMs: own ? limits.idleOwnUpstreamTimeoutMs : limits.idleUpstreamTimeoutMs,
    keptMax: limits.idleOwnUpstreamsKept,
    surplusTimeoutMs: limits.idleUpstreamTimeoutMs,
  };
}
