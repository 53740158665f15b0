/** Path of the agent's port that the edge serves: the port behind it is the one that a WebSocket connects to. */
export const tunnelPath = '/tcp/';

/** The subprotocol of clients for which an empty text message says that no more bytes follow in its direction. */
export const tunnelProtocol = 'tcp.atoll';
