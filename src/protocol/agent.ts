/** The port on which every sandbox's agent serves clients and, with the control token, the platform. */
export const agentPort = 49983;

/**
 * The version that templates and sandboxes report as `envdVersion`. Clients switch their features on it,
 * so it names the interface that is implemented, not the age of Atoll.
 */
export const agentVersion = '0.6.13';

/** Header with which the platform proves itself on `/init`. Known to the agent and the node alone. */
export const controlTokenHeader = 'x-atoll-control-token';

/** Status of the answer to an init that gave the agent another control token. Agents of old never answer it. */
export const controlTokenTaken = 201;

/** Prefix of the headers that attach metadata to uploaded files. */
export const fileMetadataHeader = 'x-metadata-';

/**
 * Header of requests to the agent that wake no sandbox: a mere observer may not know yet that the sandbox was paused.
 */
export const onlyRunningHeader = 'atoll-only-running';

/** Body of `POST /init`. Absent members keep what the agent has. */
export type AgentInit = {
  /** Replaces the whole global environment. */
  envVars?: Record<string, string>;
  /** Null: the sandbox is not secured. */
  accessToken?: string | null;
  /** Once the agent has answered, the platform proves itself by this token, and the one before is no longer valid. */
  controlToken?: string;
  /** RFC 3339. An init older than the newest one is ignored. */
  timestamp?: string;
  defaultUser?: string;
  /** Empty: the user's home directory. */
  defaultWorkdir?: string;
  /** PEM certificates to add to the sandbox's trust store. */
  caBundle?: string;
  hostname?: string;
  /** Bytes that are mixed into the sandbox's entropy, base64: forks of one checkpoint must not share randomness. */
  entropy?: string;
  /** Limits of the sandbox, for `/metrics` where no cgroup shows them. */
  memoryBytes?: number;
  cpuCount?: number;
  /** False: the output of processes stays out of the sandbox's log. */
  logOutput?: boolean;
  /**
   * Answer first, and write into the root file system afterwards, before handling the next request. For a sandbox in
   * which nothing runs yet but the agent: nobody there can see that the files come later.
   */
  filesLater?: boolean;
};

/**
 * A line of `GET /logs`, which the platform follows: first a line with the agent's epoch alone, then one for each
 * entry. `after` and `epoch` in the query name the last known entry, so that a broken connection loses nothing that the
 * agent still has.
 */
export type AgentLogLine =
  | { epoch: string }
  | {
      /** Counts the entries of the epoch from 1. A gap is the number of entries that were dropped. */
      n: number;
      /** Epoch milliseconds. */
      t: number;
      /** Place in `sandboxLogLevels`. */
      l: number;
      logger: string;
      message: string;
      fields: Record<string, string>;
    };
