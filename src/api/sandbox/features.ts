/** What this installation can do beyond the plain life of a sandbox. What it can't is refused, never ignored. */
export type Features = {
  /** Addresses and blocks in `allowOut` and `denyOut`; without it, just "everything" and "nothing". */
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

/** What an installation can do that says nothing of it. */
export const noFeatures: Features = {
  egressAddresses: false,
  egressDomains: false,
  egressProxy: false,
  headerRules: false,
  volumes: false,
  iam: false,
};
