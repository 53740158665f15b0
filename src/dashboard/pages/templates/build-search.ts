/** The build page's state in the URL: the build to compare with. */
export type BuildSearch = { with?: string };

/** Reads the search part of a URL, which anybody may have written. */
export const readBuildSearch = (raw: Record<string, unknown>): BuildSearch =>
  typeof raw['with'] === 'string' ? { with: raw['with'] } : {};
