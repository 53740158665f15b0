/** Of the agent's port, a path of the edge: behind it stands the port to which a WebSocket is a connection. */
export const tunnelPath = '/tcp/';

/** The subprotocol of clients for which an empty text message says that no more bytes follow in its direction. */
export const tunnelProtocol = 'tcp.atoll';
