export { type Atoll, atoll, type AtollOptions, type RequestOptions } from './client.ts';
export type { Bytes } from './bytes.ts';
export { AtollFailure } from './failure.ts';
export type { Operations, Schemas } from './operations.ts';
