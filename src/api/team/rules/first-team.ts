/**
 * The team that an installation starts with: the operator's own. Only its templates may have names without a namespace.
 */
export const firstTeam = { name: 'Default', slug: 'default' } as const;
