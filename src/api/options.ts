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
  /** How long a machine that control can't reach serves on before it pauses its sandboxes. Seconds. */
  isolationSeconds: number;
  /** Says which pod the token of a joining machine belongs to. Absent: no pods join. */
  reviewPod?: ReviewPod;
  /** Says which machines Kubernetes takes out of service. Absent: none. */
  cordoned?: CordonedAddresses;
  /** Where it keeps what outlives its machines, and a check whether that works. Absent: nowhere. */
  store?: { blobs: BlobStore; check(): Promise<void> };
};

/** The options with which an API starts. */
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
  /** Folder of templates' uploaded files; the builder reads them there. */
  filesDir?: string;
  /** What uploads leave free on its file system. Default: nothing. */
  diskReserveBytes?: number;
  /** At least 32 secret bytes of this installation, the same at every start: the sandboxes' tokens come from them. */
  seed: Uint8Array;
  log: Log;
  /** The operator's token for `X-Admin-Token`; without it the operator's routes admit nobody. */
  adminToken?: string;
  /** Token that reads the operator's metrics; without it, only the operator's token does. */
  metricsToken?: string;
  /** What differs from `defaultLimits`. */
  limits?: Partial<TeamLimits>;
  /** Domain of the installation. Default `localhost`. */
  domain?: string;
  /** URL by which verifiers of identity tokens reach the API, without a trailing slash. Default: `http://localhost`. */
  issuer?: string;
  /** How long a token for a volume's content is valid. Default: a day. */
  volumeTokenSeconds?: number;
  /** What the node can do; every feature that is not named is refused. */
  features?: Partial<Features>;
  /** How long past figures are kept. Default: two weeks for teams, a day for past sandboxes. */
  retention?: MetricsRetention;
  /** Refuse sandboxes without a token of their own. Default: as in v1, where a client has to ask for a token. */
  requireSecure?: boolean;
  /** What differs from `defaultWebhookSettings`. */
  webhooks?: Partial<WebhookSettings>;
  /** Templates that are isolated in another way than the node's default. */
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
  /** How long this process counts as alive after its last report, where several share a database. Default: 15 s. */
  replica?: { leaseSeconds?: number };
  /** A clock in place of the machine's or the database's, for tests. */
  clock?: SteadyClock;
  /** Report the duration of each step of a request in a `Server-Timing` header. */
  trace?: boolean;
  /** Gets the spans of requests that clients trace, and of the given share of the others. */
  spans?: { record(spans: Span[]): void; ratio: number };
  /** Commit of the running source; empty where it is unknown. */
  commit?: string;
  /** Examines the machine, for the operator; absent: nothing can do that. */
  examine?: () => Promise<HostFinding[]>;
  /** The settings of the process in the form for the operator. Default: none. */
  shownSettings?: ShownSettings;
  /** Metrics of other parts of the process, for the operator. */
  metrics?: () => Metric[];
};
