/** Installations that one machine can hold. */
export const installationsMax = 16;

/** Processes of the platform that run as users of their own. */
type UnprivilegedPart = 'egress' | 'builder' | 'api' | 'edge' | 'gate';

/**
 * Below the ranges of the sandboxes, and above those that distributions give to users and to other container managers.
 */
const lastUserId = 0x6fff_ffff;
const places: Record<UnprivilegedPart, number> = { egress: 0, builder: 1, api: 2, edge: 3, gate: 4 };

/**
 * User and group that a part of an installation runs as: nobody else on the machine has the number, and no password
 * file lists it.
 */
export function userIdOf(part: UnprivilegedPart, installation: number): number {
  return lastUserId - places[part] * installationsMax - installation;
}
