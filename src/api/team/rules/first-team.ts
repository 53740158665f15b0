/**
 * The team that an installation starts with: the operator's own. Its templates alone may have names without namespace.
 */
export const firstTeam = { name: 'Default', slug: 'default' } as const;
