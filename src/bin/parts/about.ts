/** The api's report once it serves. */
export type ApiAbout = {
  apiKey: string;
  building: string[];
  /** Path of a link that signs the operator in at the dashboard; null where that is not built. */
  signInPath: string | null;
};

/** The edge's report once it serves. */
export type EdgeAbout = { port: number; tlsPort: number | null };
