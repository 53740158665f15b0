/** Abilities of this installation beyond the plain life of a sandbox. What it can't do is refused, never ignored. */
export type Features = {
  /** Addresses and blocks in `allowOut` and `denyOut`; without it, only "everything" and "nothing". */
  egressAddresses: boolean;
  /** Domains in `allowOut`. */
  egressDomains: boolean;
  egressProxy: boolean;
  /** Header rules by domain. */
  headerRules: boolean;
  volumes: boolean;
  /** Identity tokens in header rules. */
  iam: boolean;
};

/** The features of an installation that names none. */
export const noFeatures: Features = {
  egressAddresses: false,
  egressDomains: false,
  egressProxy: false,
  headerRules: false,
  volumes: false,
  iam: false,
};
