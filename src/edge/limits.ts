/** Every bound of the edge. Times in milliseconds, sizes in bytes. */
export type EdgeLimits = {
  /** Client connections open at once. A further one takes the place of the connection that has been idle longest. */
  clientConnectionsMax: number;
  /** Connections from one IPv4 address or one /64 of IPv6; this machine itself has no such limit. */
  connectionsPerAddressMax: number;
  /** Places of all these that are reserved for connections from this machine. */
  localConnectionsReserved: number;
  /** Requests to the API in flight; more are answered 503. */
  apiRequestsMax: number;
  /** Requests to the API in flight from one address or /64. */
  apiRequestsPerAddressMax: number;
  /** Places of all these that are reserved for requests from this machine. */
  localApiRequestsReserved: number;
  /** Requests and upgraded connections in flight into all sandboxes; further ones are answered 503. */
  sandboxRequestsMax: number;
  /** The same for the sandboxes of one team; further ones are answered 429. */
  requestsPerTeamMax: number;
  /** The same for one sandbox; further ones are answered 429. */
  connectionsPerSandboxMax: number;
  requestHeadBytesMax: number;
  /**
   * Head of a request to the API or an agent: with what the edge adds, it stays below the 16 KiB beyond which the
   * runtime refuses it.
   */
  ownRequestHeadBytesMax: number;
  /** An unfinished head counts as large from this size on. */
  largeHeadBytes: number;
  /** Large unfinished heads at once. One more ends the connection whose head became large first. */
  largeHeadsMax: number;
  /**
   * What waits in all connections together, because nobody takes it. Beyond it, a connection ends of the team or
   * address for which most waits.
   */
  waitingBytesMax: number;
  responseHeadBytesMax: number;
  hostBytesMax: number;
  headerLinesMax: number;
  /** Interim (1xx) responses before one final response. */
  interimResponsesMax: number;
  /** What a client may send before the response to its last request; beyond that, its socket is not read. */
  pipelineBytesMax: number;
  /** How much of a refused request's body is skipped to keep the connection; beyond that, the connection is closed. */
  discardBytesMax: number;
  /** From a request's first byte to the end of its head. */
  headTimeoutMs: number;
  /** From accept to the first byte; includes the TLS handshake. */
  firstByteTimeoutMs: number;
  /** Between two requests of a connection. Longer than the clients keep idle connections. */
  keepAliveTimeoutMs: number;
  /** The same when the last place is taken. Once half the places are taken, the timeout shrinks towards this value. */
  crowdedKeepAliveMs: number;
  /** Without a byte in either direction, during a request or on an upgraded connection. */
  streamIdleTimeoutMs: number;
  /** Without a byte of the body of a request to the API, which holds a place there all that time. */
  apiBodyIdleTimeoutMs: number;
  /**
   * Without a body byte on a client's HTTP/2 connection while one of its streams holds a finished response: then the
   * stream is reset. Also without a byte of an API response that an HTTP/1.1 client takes: the response holds a place
   * in the API all that time.
   */
  unreadTimeoutMs: number;
  /** For a closing connection to take its last bytes. */
  lingerTimeoutMs: number;
  /**
   * How long a client that closed its sending side may receive no response byte before the sandbox is told: some
   * clients only half-close, but most are gone.
   */
  halfCloseGraceMs: number;
  /** Waits between the attempts to reach a port on which nothing listens yet. */
  dialBackoffMs: readonly number[];
  dialTimeoutMs: number;
  /** For the TLS handshake with a sandbox's service. */
  handshakeTimeoutMs: number;
  /** For a paused sandbox to run again, including a pause in progress. */
  wakeTimeoutMs: number;
  /** Idle connections kept to one port of one sandbox, and to the API: what a burst may leave for the next one. */
  idleUpstreamsPerPortMax: number;
  /** Idle connections kept to all sandboxes, and to those of one team. */
  idleSandboxUpstreamsMax: number;
  idleUpstreamsPerTeamMax: number;
  /** How many idle connections to one of our own servers are kept for longer than `idleUpstreamTimeoutMs`. */
  idleOwnUpstreamsKept: number;
  /**
   * Idle connections to sandboxes' ports are closed after this. Less than the 5 s after which Node servers close
   * theirs.
   */
  idleUpstreamTimeoutMs: number;
  /**
   * A request that must not be sent twice takes an idle connection only if it was used this recently: the server may
   * just be closing an older one.
   */
  freshUpstreamMs: number;
  /** The same for connections to the agent and the API, whose servers don't close idle connections. */
  idleOwnUpstreamTimeoutMs: number;
};

/** The limits of an edge that has enough descriptors. */
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
  largeHeadBytes: 8_192,
  largeHeadsMax: 512,
  waitingBytesMax: 1_073_741_824,
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

/** How the edge divides its descriptors. The rest is for connections that are being accepted or dialled. */
const descriptorParts = { clients: 1 / 2, sandboxRequests: 1 / 4, apiRequests: 1 / 8, idleUpstreams: 1 / 16 };
/** Parts of a limit, used when there are too few descriptors for the default limits. */
const addressPart = 1 / 4;
const teamPart = 1 / 2;
const localPart = 1 / 8;
/** The part of the edge's memory for what waits: as much again goes for the objects around it and the collector. */
const waitingPart = 1 / 4;

/**
 * Descriptors per connection into a sandbox. For a connection that another machine carries, this process holds both
 * ends of the local socket that stands for it.
 */
const connectionDescriptors = { direct: 1, carried: 2 } as const;

/**
 * The default limits, reduced if `descriptors` (how many files the edge may hold open) are too few for them. So no
 * client and no sandbox can take the last descriptor, and some are always left for the API and for operators. `way`:
 * how connections reach sandboxes. `memoryBytes`: how much memory it may take.
 */
export function limitsWithin(
  descriptors: number,
  way: keyof typeof connectionDescriptors = 'direct',
  memoryBytes = Number.POSITIVE_INFINITY,
): EdgeLimits {
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
    waitingBytesMax: part(memoryBytes, waitingPart, most.waitingBytesMax),
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
