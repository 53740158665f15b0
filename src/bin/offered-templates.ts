/** The templates that come with Atoll besides `base`, by the names of their folders in `templates`. */
export const offeredTemplates: readonly string[] = [
  'code-interpreter-v1',
  'desktop',
  'mcp-gateway',
  'devcontainer',
  'claude',
  'codex',
  'opencode',
];

/** The templates that are built after a start unless the operator says otherwise; the others are built on demand. */
export const usualTemplates: readonly string[] = ['code-interpreter-v1'];

/**
 * Parts of the definitions that may be left out: the first three belong to `code-interpreter-v1`, the last to
 * `desktop`.
 */
export const offeredParts: readonly string[] = ['packages', 'r', 'java', 'browser'];
