/** Every bound of the edge. Times in milliseconds, sizes in bytes. */
export type EdgeLimits = {
  /** Client connections open at once. One more takes the place of the connection that is idle longest. */
  clientConnectionsMax: number;
  /** The same from one IPv4 address, or one /64 of IPv6; this machine's own have no such limit. */
  connectionsPerAddressMax: number;
  /** Places among them all for connections from this machine. */
  localConnectionsReserved: number;
  /** Requests to the API in flight; more are answered 503. */
  apiRequestsMax: number;
  /** The same from one address or /64. */
  apiRequestsPerAddressMax: number;
  /** Places among them all for requests from this machine. */
  localApiRequestsReserved: number;
  /** Requests and upgraded connections in flight into all sandboxes; more are answered 503. */
  sandboxRequestsMax: number;
  /** The same into the sandboxes of one team; more are answered 429. */
  requestsPerTeamMax: number;
  /** Requests and upgraded connections in flight into one sandbox; more are answered 429. */
  connectionsPerSandboxMax: number;
  requestHeadBytesMax: number;
  /**
   * Of a request to the API or an agent: with what the edge adds, it stays below the 16 KiB beyond which the runtime
   * refuses.
   */
  ownRequestHeadBytesMax: number;
  responseHeadBytesMax: number;
  hostBytesMax: number;
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
  /** The same where the last place is taken. From half of them on, it goes down to this. */
  crowdedKeepAliveMs: number;
  /** Without a byte in either direction during a request or on an upgraded connection. */
  streamIdleTimeoutMs: number;
  /** Without a byte of the body of a request to the API, which holds a place there as long. */
  apiBodyIdleTimeoutMs: number;
  /**
   * Without a byte of any body on a client's HTTP/2 connection while one of its streams holds a response that is over.
   * The stream is reset then.
   */
  unreadTimeoutMs: number;
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
  /** Idle connections kept to all sandboxes, and to those of one team. */
  idleSandboxUpstreamsMax: number;
  idleUpstreamsPerTeamMax: number;
  /** How many of them are kept for longer than `idleUpstreamTimeoutMs` where the server is our own. */
  idleOwnUpstreamsKept: number;
  /**
   * Idle connections to sandboxes' ports are closed after this. Below the 5 s after which Node servers close theirs.
   */
  idleUpstreamTimeoutMs: number;
  /**
   * A request that must not be sent twice takes an idle connection only if it was used this recently:
   * a server may be closing an older one at this moment.
   */
  freshUpstreamMs: number;
  /** The same for connections to the agent and the API, whose servers don't close idle ones. */
  idleOwnUpstreamTimeoutMs: number;
};

/** The limits of an edge that has descriptors enough. */
export const defaultLimits: EdgeLimits = {
  clientConnectionsMax: 16_384,
  connectionsPerAddressMax: 4096,
  localConnectionsReserved: 512,
  apiRequestsMax: 2048,
  apiRequestsPerAddressMax: 512,
  localApiRequestsReserved: 256,
  sandboxRequestsMax: 12_288,
  requestsPerTeamMax: 6144,
  connectionsPerSandboxMax: 1024,
  requestHeadBytesMax: 65_536,
  ownRequestHeadBytesMax: 15_360,
  responseHeadBytesMax: 131_072,
  hostBytesMax: 512,
  headerLinesMax: 128,
  interimResponsesMax: 16,
  pipelineBytesMax: 65_536,
  discardBytesMax: 1_048_576,
  headTimeoutMs: 15_000,
  firstByteTimeoutMs: 60_000,
  keepAliveTimeoutMs: 650_000,
  crowdedKeepAliveMs: 5_000,
  streamIdleTimeoutMs: 3_600_000,
  apiBodyIdleTimeoutMs: 60_000,
  unreadTimeoutMs: 120_000,
  lingerTimeoutMs: 5_000,
  halfCloseGraceMs: 200,
  dialBackoffMs: [100, 200, 300, 400],
  dialTimeoutMs: 10_000,
  handshakeTimeoutMs: 10_000,
  wakeTimeoutMs: 90_000,
  idleUpstreamsPerPortMax: 512,
  idleSandboxUpstreamsMax: 4096,
  idleUpstreamsPerTeamMax: 2048,
  idleOwnUpstreamsKept: 16,
  idleUpstreamTimeoutMs: 4_000,
  freshUpstreamMs: 1_000,
  idleOwnUpstreamTimeoutMs: 120_000,
};

/**
 * What part of its descriptors the edge uses for what. The rest is for what is being accepted or dialled at the moment.
 */
const descriptorParts = { clients: 1 / 2, sandboxRequests: 1 / 4, apiRequests: 1 / 8, idleUpstreams: 1 / 16 };
/** Parts of a limit, where descriptors are too few for the default ones. */
const addressPart = 1 / 4;
const teamPart = 1 / 2;
const localPart = 1 / 8;

/**
 * Descriptors that a connection into a sandbox takes: of one that another machine carries, this process has both ends
 * of the local socket that stands for it.
 */
const connectionDescriptors = { direct: 1, carried: 2 } as const;

/**
 * The default limits, made smaller where `descriptors` (how many files the edge may hold open) are too few for them: so
 * that no client and no sandbox can take the last one, and always some are left for the API and for operators. `way`:
 * how connections come into sandboxes.
 */
export function limitsWithin(descriptors: number, way: keyof typeof connectionDescriptors = 'direct'): EdgeLimits {
  const part = (whole: number, share: number, most: number) => Math.max(1, Math.min(most, Math.floor(whole * share)));
  const most = defaultLimits;
  const clientConnectionsMax = part(descriptors, descriptorParts.clients, most.clientConnectionsMax);
  const apiRequestsMax = part(descriptors, descriptorParts.apiRequests, most.apiRequestsMax);
  const intoSandboxes = descriptors / connectionDescriptors[way];
  const sandboxRequestsMax = part(intoSandboxes, descriptorParts.sandboxRequests, most.sandboxRequestsMax);
  const requestsPerTeamMax = part(sandboxRequestsMax, teamPart, most.requestsPerTeamMax);
  const idleSandboxUpstreamsMax = part(intoSandboxes, descriptorParts.idleUpstreams, most.idleSandboxUpstreamsMax);
  return {
    ...most,
    clientConnectionsMax,
    connectionsPerAddressMax: part(clientConnectionsMax, addressPart, most.connectionsPerAddressMax),
    localConnectionsReserved: part(clientConnectionsMax, localPart, most.localConnectionsReserved),
    apiRequestsMax,
    apiRequestsPerAddressMax: part(apiRequestsMax, addressPart, most.apiRequestsPerAddressMax),
    localApiRequestsReserved: part(apiRequestsMax, localPart, most.localApiRequestsReserved),
    sandboxRequestsMax,
    requestsPerTeamMax,
    connectionsPerSandboxMax: part(requestsPerTeamMax, 1, most.connectionsPerSandboxMax),
    idleSandboxUpstreamsMax,
    idleUpstreamsPerTeamMax: part(idleSandboxUpstreamsMax, teamPart, most.idleUpstreamsPerTeamMax),
  };
}
