/** Codes of the Connect protocol (connectrpc.com/docs/protocol, "Error codes") and their HTTP status on unary calls. */
export const connectStatus = {
  canceled: 499,
  unknown: 500,
  invalid_argument: 400,
  deadline_exceeded: 504,
  not_found: 404,
  already_exists: 409,
  permission_denied: 403,
  resource_exhausted: 429,
  failed_precondition: 400,
  unimplemented: 501,
  internal: 500,
  unavailable: 503,
  unauthenticated: 401,
} as const;

/** An error code of the Connect protocol. */
export type ConnectCode = keyof typeof connectStatus;
