/** The port on which every sandbox's agent serves clients and, with the control token, the platform. */
export const agentPort = 49983;

/**
 * The version that templates and sandboxes report as `envdVersion`. Clients switch their features on it,
 * so it names the interface that is implemented, not the age of Atoll.
 */
export const agentVersion = '0.6.13';

/** Header with which the platform proves itself on `/init`. Known to the agent and the node alone. */
export const controlTokenHeader = 'x-atoll-control-token';

/** Status of the answer to an init that has given the agent another control token: agents of old know none such. */
export const controlTokenTaken = 201;

/** What the names of headers begin with that attach metadata to uploaded files. */
export const fileMetadataHeader = 'x-metadata-';

/** Header of requests to the agent that wake no sandbox: who only looks at one may not know yet that it was paused. */
export const onlyRunningHeader = 'atoll-only-running';

/** Body of `POST /init`. Absent members keep what the agent has. */
export type AgentInit = {
  /** Replaces the whole global environment. */
  envVars?: Record<string, string>;
  /** Null: the sandbox is not secured. */
  accessToken?: string | null;
  /** From the answer on the platform proves itself by this one, and the one before counts no more. */
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
   * Answer first, and write into the root file system then, before the next request is looked at. For a sandbox of
   * which nothing runs yet but the agent: nobody there can see that the files come later.
   */
  filesLater?: boolean;
};

/**
 * A line of `GET /logs`, which the platform follows: first one with the agent's epoch alone, then one for each entry.
 * `after` and `epoch` in the query name the last known entry, so that a broken connection loses nothing that the agent
 * still has.
 */
export type AgentLogLine =
  | { epoch: string }
  | {
      /** Counts the entries of the epoch from 1. A gap: that many were dropped. */
      n: number;
      /** Epoch milliseconds. */
      t: number;
      /** Place in `sandboxLogLevels`. */
      l: number;
      logger: string;
      message: string;
      fields: Record<string, string>;
    };
