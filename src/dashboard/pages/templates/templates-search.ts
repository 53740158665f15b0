/** The templates page's state in the URL: the name of a template to build, and the one to build again. */
export type TemplatesSearch = { build?: string; again?: string };

/** Reads the search part of a URL, which anybody may have written. */
export function readTemplatesSearch(raw: Record<string, unknown>): TemplatesSearch {
  const { build, again } = raw;
  return { ...(typeof build === 'string' && { build }), ...(typeof again === 'string' && { again }) };
}
