/** The templates that come with Atoll beside `base`, by the names of their folders in `templates`. */
export const offeredTemplates: readonly string[] = [
  'code-interpreter-v1',
  'desktop',
  'mcp-gateway',
  'devcontainer',
  'claude',
  'codex',
  'opencode',
];

/** Those of them that are built after a start where the operator says nothing; the others when they are asked for. */
export const usualTemplates: readonly string[] = ['code-interpreter-v1'];

/**
 * Parts of their definitions that may be left out: the first three are of `code-interpreter-v1`, the last of `desktop`.
 */
export const offeredParts: readonly string[] = ['packages', 'r', 'java', 'browser'];
