/** Path on the agent's port that the edge serves itself: a WebSocket connects to the port named after it. */
export const tunnelPath = '/tcp/';

/** The subprotocol in which an empty text message from the client ends the bytes in its direction. */
export const tunnelProtocol = 'tcp.atoll';
