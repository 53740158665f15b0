import type { Log } from '../../base/log.ts';
import type { Family } from '../../base/meter.ts';
import type { BuildProtocol, BuildsAllowed } from '../../protocol/build.ts';
import type { CreateCounts } from '../placement/create-counts.ts';
import type { Nodes } from '../placement/nodes.ts';
import type { Store } from '../store/database.ts';
import type { TeamLimits, TeamRecord } from '../store/team.ts';
import type { BusyExecutions } from './busy.ts';
import type { Clock, SteadyClock } from './clock.ts';
import type { CredentialCache } from './credential-cache.ts';
import type { WebhookSettings } from '../webhooks/settings.ts';
import type { Measures } from './measures.ts';
import type { RateLimiter } from './rate-limit.ts';
import type { AuditBacklog } from './audit-backlog.ts';
import type { Health } from './health.ts';
import type { Uploads } from './uploads.ts';
import type { StartCounts } from './start-counts.ts';
import type { SandboxDirectory } from './directory.ts';
import type { TemplateDrivers } from './template-driver.ts';

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

/** What every rule of the platform works on. */
export type App = {
  store: Store;
  nodes: Nodes;
  directory: SandboxDirectory;
  credentials: CredentialCache;
  /** Secret of the installation from which the sandboxes' tokens are derived. */
  seed: Uint8Array;
  /** The operator's token, or null where there is none: then the operator's routes let nobody in. */
  adminToken: string | null;
  /** What reads the operator's metrics, or null where there is none. */
  metricsToken: string | null;
  /** The installation's limits; a team's own go before. */
  limits: TeamLimits;
  features: Features;
  webhooks: WebhookSettings;
  /** Sandboxes without a token of their own are refused. */
  requireSecure: boolean;
  templateDrivers: TemplateDrivers;
  /** Who may build templates. */
  buildsAllowed: BuildsAllowed;
  clock: Clock;
  /** Where `clock` stands beside the machine's. */
  clockSteps: Pick<SteadyClock, 'steppedUs' | 'follow'>;
  startedAtUs: number;
  createCounts: CreateCounts;
  startCounts: StartCounts;
  measures: Measures;
  /** Of the source that runs; empty where nobody knows. */
  commit: string;
  /** What other parts of the process have counted. */
  families: () => Family[];
  rateLimiter: RateLimiter;
  uploads: Uploads;
  health: Health;
  auditBacklog: AuditBacklog;
  log: Log;
  /** Executions on which a workflow of this process works now: the reconcilers leave them alone. */
  busy: BusyExecutions;
  /** Resumes of this process that are under way, by sandbox ID: who asks meanwhile waits for the same one. */
  resuming: Map<string, Promise<unknown>>;
  builder: BuildProtocol;
  /** Domain of the installation: its API is `api.<domain>` to clients of volumes. */
  domain: string;
  /** For how long a token for a volume's content is good. */
  volumeTokenSeconds: number;
  /** Where uploaded files of templates are kept: `<team>/<hash>`. */
  filesDir: string;
  /** What uploads leave free on the file system of `filesDir`. */
  diskReserveBytes: number;
  /** Builds whose log and outcome this process takes over, by ID. */
  followedBuilds: Map<string, Promise<void>>;
  /** Builds of templates that come with the platform, by template ID: creates wait for them. */
  awaitedBuilds: Map<string, Promise<void>>;
  /** Aborted when this process ends: what waits for something outside gives up. */
  stopping: AbortSignal;
};

export function limitsOf(app: App, team: TeamRecord): TeamLimits {
  return { ...app.limits, ...team.limits };
}
