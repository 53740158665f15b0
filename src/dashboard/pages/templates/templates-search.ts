/** What the URL says of the templates page: the name of a template that is to be built, and the one to build again. */
export type TemplatesSearch = { build?: string; again?: string };

/** Reads the search of a URL that anybody may have written. */
export function readTemplatesSearch(raw: Record<string, unknown>): TemplatesSearch {
  const { build, again } = raw;
  return { ...(typeof build === 'string' && { build }), ...(typeof again === 'string' && { again }) };
}
