/**
 * Names in the certificates of a cluster's own authority. `.internal` is reserved for private use (ICANN, 2024): no
 * public authority signs one.
 */
const suffix = '.atoll.internal';

/** Processes of control that may call nodes. */
const controlRoles = ['api', 'edge'] as const;
export type ControlRole = (typeof controlRoles)[number];

/** The name of a node, under which control expects it. */
export const nodeName = (nodeId: string): string => `${nodeId}.node${suffix}`;

/** The name of a process of control, which tells nodes what it may call. */
export const controlName = (role: ControlRole): string => `${role}.control${suffix}`;

/** The process of control that a certificate is for, by its alternative names as TLS shows them; undefined: none. */
export function controlRoleOf(subjectAltName: string | undefined): ControlRole | undefined {
  return controlRoles.find(role => subjectAltName === `DNS:${controlName(role)}`);
}
