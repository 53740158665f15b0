import { AtollError } from '../base/error.ts';

/** Marks errors for want of room on a machine, by what it has promised or by what it says itself: `detail` of them. */
export const nodeFull = 'sandbox_capacity_unavailable';

/** Says whether there is no room for a sandbox, the reserve of a machine's disk included. Others may have some. */
export function saysFull(error: unknown): error is AtollError {
  return error instanceof AtollError && (error.detail === nodeFull || error.detail === 'disk_reserve');
}
