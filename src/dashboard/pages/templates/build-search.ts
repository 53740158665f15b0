/** What the URL says of a build's page: the build that it is compared with. */
export type BuildSearch = { with?: string };

/** Reads the search of a URL that anybody may have written. */
export const readBuildSearch = (raw: Record<string, unknown>): BuildSearch =>
  typeof raw['with'] === 'string' ? { with: raw['with'] } : {};
