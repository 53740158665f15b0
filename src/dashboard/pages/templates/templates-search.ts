/** What the URL says of the templates page: the name of a template that is to be built. */
export type TemplatesSearch = { build?: string };

/** Reads the search of a URL that anybody may have written. */
export function readTemplatesSearch(raw: Record<string, unknown>): TemplatesSearch {
  return typeof raw['build'] === 'string' ? { build: raw['build'] } : {};
}
