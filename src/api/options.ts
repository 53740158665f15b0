import type { ShownSettings } from '../protocol/api/installation.ts';
import type { HostFinding } from '../protocol/doctor.ts';
import type { SteadyClock } from '../base/clock.ts';
import type { Log } from '../base/telemetry/log.ts';
import type { Metric } from '../base/telemetry/meter.ts';
import type { Span } from '../base/telemetry/trace.ts';
import type { BlobStore } from '../protocol/blob.ts';
import type { OidcFile } from '../protocol/oidc.ts';
import type { ClusterLinks, CordonedAddresses, ReviewPod } from '../protocol/cluster.ts';
import type { BuildProtocol, BuildsAllowed } from '../protocol/build.ts';
import type { NodeProtocol } from '../protocol/node.ts';
import type { Pages } from './dashboard/files.ts';
import type { Store } from './database/database.ts';
import type { MetricsRetention } from './metrics/reconcilers/team.ts';
import type { Features } from './sandbox/features.ts';
import type { TeamLimits } from './team/record.ts';
import type { TemplateDrivers } from './template/rules/driver.ts';
import type { WebhookSettings } from './webhook/delivery/settings.ts';

/** How an API works with machines that join. */
type ClusterOptions = {
  links: ClusterLinks;
  /** For how long a machine serves that control can't reach, before it pauses its sandboxes. Seconds. */
  isolationSeconds: number;
  /** Says whose the token of a pod is that wants to join. Absent: no pods join. */
  reviewPod?: ReviewPod;
  /** Says which machines Kubernetes takes out of service. Absent: none. */
  cordoned?: CordonedAddresses;
  /** Where it keeps what outlives its machines, and what finds out whether that works. Absent: nowhere. */
  store?: { blobs: BlobStore; check(): Promise<void> };
};

/** What an API is started with. */
export type ApiOptions = {
  /** Path of the unix socket on which the REST API listens. */
  socketPath: string;
  /** Who may connect to it; default: this user alone. */
  socketMode?: number;
  /** From `openStore`; closed by whoever opened it, after `stop`. */
  store: Store;
  /** The node of this machine. Exactly one of `node` and `cluster` is given. */
  node?: NodeProtocol;
  /** The machines that join, on PostgreSQL. */
  cluster?: ClusterOptions;
  /** Absent: templates can't be built here. */
  builder?: BuildProtocol;
  /** Where uploaded files of templates are kept; the builder reads them there. */
  filesDir?: string;
  /** What uploads leave free on its file system. Default: nothing. */
  diskReserveBytes?: number;
  /** At least 32 secret bytes of this installation, the same at every start: the sandboxes' tokens come from them. */
  seed: Uint8Array;
  log: Log;
  /** The operator's token for `X-Admin-Token`; without it the operator's routes let nobody in. */
  adminToken?: string;
  /** Reads the operator's metrics; without it, the operator's token alone does. */
  metricsToken?: string;
  /** What differs from `defaultLimits`. */
  limits?: Partial<TeamLimits>;
  /** Domain of the installation. Default `localhost`. */
  domain?: string;
  /**
   * URL by which verifiers of identity tokens reach the API, without a slash at the end. Default: `http://localhost`.
   */
  issuer?: string;
  /** For how long a token for a volume's content is good. Default: a day. */
  volumeTokenSeconds?: number;
  /** What the node can do; everything that is not named is refused. */
  features?: Partial<Features>;
  /** How long numbers of the past are kept. Default: two weeks of teams, a day of sandboxes that are gone. */
  retention?: MetricsRetention;
  /**
   * Refuse sandboxes that would have no token of their own. Default: as v1 has it, where one has to ask for a token.
   */
  requireSecure?: boolean;
  /** What differs from `defaultWebhookSettings`. */
  webhooks?: Partial<WebhookSettings>;
  /** Which templates are isolated otherwise than by the node's default. */
  templateDrivers?: TemplateDrivers;
  /** Who may build templates. Default: every team. */
  buildsAllowed?: BuildsAllowed;
  /** The identity provider at which people sign in; absent: there is none. */
  oidc?: OidcFile;
  /** From `loadDashboard`; absent: there is none. */
  dashboard?: Pages | null;
  /** From `loadDocs`; absent: there are none. */
  docs?: Pages | null;
  /** Check every answer against its documented schema. For tests. */
  checkAnswers?: boolean;
  /** How long this process counts as alive after it last said so, where several share a database. Default: 15 s. */
  replica?: { leaseSeconds?: number };
  /** Another than the machine's or the database's, for tests. */
  clock?: SteadyClock;
  /** Say in a `Server-Timing` header how long each step of a request took. */
  trace?: boolean;
  /** Gets the spans of each request, and of those that clients do not trace themselves the given share. */
  spans?: { record(spans: Span[]): void; ratio: number };
  /** Commit of the source that runs; empty where nobody knows. */
  commit?: string;
  /** Examines the machine, for the operator; absent: nothing can. */
  examine?: () => Promise<HostFinding[]>;
  /** The settings of the process as the operator is shown them. Default: none. */
  shownSettings?: ShownSettings;
  /** What other parts of the process have counted, for the operator's metrics. */
  metrics?: () => Metric[];
};
