import type { ColumnType, Generated } from 'kysely';
import type { EventSubject, EventType } from '../../protocol/api/event.ts';
import type { BuildStatus } from '../../protocol/api/template.ts';
import type { DeliveryState } from '../../protocol/api/webhook.ts';
import type { AccountTables } from './account-tables.ts';
import type { ClusterTables } from './cluster-schema.ts';
import type { Fixed, Flag, TableOf } from './column-types.ts';
import type { sandboxColumns } from '../sandbox/record.ts';

/**
 * The tables, the same on SQLite and PostgreSQL. Conventions hide the differences: times are integers of microseconds
 * since the epoch (`…_us`), booleans are 0 or 1, and JSON is text (`…_json`), because each of these has one form that
 * both hold exactly.
 */
export type Tables = AccountTables &
  ClusterTables & {
    templates: TemplateTable;
    template_names: TemplateNameTable;
    builds: BuildTable;
    build_tags: BuildTagTable;
    build_log: BuildLogTable;
    sandboxes: SandboxTable;
    sandbox_labels: SandboxLabelTable;
    idempotency_keys: IdempotencyKeyTable;
    repeated_requests: RepeatedRequestTable;
    nodes: NodeTable;
    audit_log: AuditTable;
    secrets: SecretTable;
    team_metrics: TeamMetricTable;
    template_hours: TemplateHourTable;
    past_sandboxes: PastSandboxTable;
    events: EventTable;
    webhooks: WebhookTable;
    webhook_deliveries: WebhookDeliveryTable;
    volumes: VolumeTable;
    sandbox_volumes: SandboxVolumeTable;
    installation: InstallationTable;
    volume_removals: VolumeRemovalTable;
    replicas: ReplicaTable;
    database_timeline: TimelineTable;
    database_clock: ClockTable;
  };

/** Templates. */
export type TemplateTable = {
  template_id: Fixed<string>;
  team_id: Fixed<string>;
  kind: Fixed<'template' | 'snapshot'>;
  public: Flag;
  created_by: Fixed<string | null>;
  created_at_us: Fixed<number>;
  updated_at_us: number;
  last_spawned_at_us: number | null;
  spawn_count: number;
  build_count: number;
};

/** Names of templates. */
type TemplateNameTable = {
  /** The owner's slug, or empty for a name without namespace. */
  namespace: Fixed<string>;
  alias: Fixed<string>;
  template_id: string;
  created_at_us: Fixed<number>;
};

/** Builds of templates. */
export type BuildTable = {
  build_id: Fixed<string>;
  template_id: Fixed<string>;
  status: BuildStatus;
  cpu_count: number;
  memory_mib: number;
  disk_mib: number;
  agent_version: string | null;
  /** Layer digests, lowest first. */
  layers_json: string;
  /** `BuildConfig` of ../build/record.ts. */
  config_json: string;
  /** `BuildReason` of ../build/record.ts; null where nothing failed. */
  reason_json: string | null;
  /** A Dockerfile that was given before the build started. */
  request_json: string | null;
  /** The sandbox that a snapshot was taken of. It may be gone by now. */
  source_sandbox_id: Fixed<string | null>;
  created_at_us: Fixed<number>;
  updated_at_us: number;
  finished_at_us: number | null;
  /** During the build: the process that takes over its log and outcome. */
  replica_id: ColumnType<string | null, string | null | undefined, string | null>;
  /** In a cluster, the node that was told to build it. */
  node_id: ColumnType<string | null, string | null | undefined, string | null>;
  /** In a cluster, during the build: `StartBuild`, encrypted by the seed, for another node. */
  sealed_plan: ColumnType<string | null, string | null | undefined, string | null>;
  /** In a cluster, the number of lost nodes that had been told to build it. */
  nodes_lost: ColumnType<number, number | undefined, number>;
  /** Number of lines in its log before those of the present node. */
  log_offset: ColumnType<number, number | undefined, number>;
  /** Its layers are in the store of the cluster. */
  layers_stored: ColumnType<0 | 1, 0 | 1 | undefined, 0 | 1>;
  /** Its memory is in the store too, or it has none, or the memory is lost. */
  memory_stored: ColumnType<0 | 1, 0 | 1 | undefined, 0 | 1>;
};

/** The build that a tag of a template selects: the newest assignment counts. */
type BuildTagTable = {
  template_id: Fixed<string>;
  tag: Fixed<string>;
  build_id: Fixed<string>;
  assigned_at_us: number;
};

/** One line of a build's log. */
type BuildLogTable = {
  build_id: Fixed<string>;
  /** Counted from 0 without gaps. */
  number: Fixed<number>;
  timestamp_ms: Fixed<number>;
  /** Place in `logLevels`, so that a minimum is a comparison. */
  level: Fixed<number>;
  message: Fixed<string>;
  step: Fixed<string | null>;
};

/** Sandboxes, by the columns that their records define. */
type SandboxTable = TableOf<typeof sandboxColumns>;

/** One row for each metadata pair, so that a filter is an index lookup on both databases. */
type SandboxLabelTable = {
  sandbox_id: Fixed<string>;
  /** SHA-256 of the pair: texts of any length, NUL included, compare exactly. */
  pair_digest: Fixed<string>;
};

/** A create that its client may repeat: the same key means the same sandbox. */
type IdempotencyKeyTable = {
  team_id: Fixed<string>;
  idempotency_key: Fixed<string>;
  /** Digest of the request, by the installation's seed. */
  request_digest: Fixed<string>;
  /** Not a foreign key: the answer stays the same when the sandbox is gone. */
  sandbox_id: Fixed<string>;
  /** `CreatedSandbox`. */
  answer_json: Fixed<string>;
  /** The sandbox ran: this is the answer. Until then, the answer holds only while that sandbox still has a row. */
  answered: Flag;
  created_at_us: Fixed<number>;
};

/** Another request that its client may repeat: the same key means the same answer. */
type RepeatedRequestTable = {
  team_id: Fixed<string>;
  operation: Fixed<string>;
  idempotency_key: Fixed<string>;
  /** Digest of the request, by the installation's seed. */
  request_digest: Fixed<string>;
  /** The process that carries it out; empty where no process does any more and its effect is unknown. */
  replica_id: string;
  /**
   * Encrypted, because it contains tokens; null while the request is carried out, and where its process ended
   * meanwhile.
   */
  sealed_answer: string | null;
  created_at_us: Fixed<number>;
};

/**
 * What an operator, or Kubernetes (`evicting`: move or pause all), wants of a machine; whether it is connected and
 * healthy is observed.
 */
export type WantedNodeStatus = 'ready' | 'draining' | 'pausing' | 'moving' | 'evicting' | 'standby';

/** What the operator wants of machines. */
type NodeTable = { node_id: Fixed<string>; status: WantedNodeStatus; status_changed_at_us: number };

/** One change. Rows are only ever added, and removed when they are old. */
type AuditTable = {
  entry_id: Fixed<string>;
  at_us: Fixed<number>;
  operation: Fixed<string>;
  target: Fixed<string>;
  /** `local`: root on the machine, using the command line; the ID is the account's name. */
  actor_kind: Fixed<'apiKey' | 'user' | 'admin' | 'local' | 'none'>;
  actor_id: Fixed<string | null>;
  /** Not a foreign key: a team's changes are shown even when it is gone. */
  team_id: Fixed<string | null>;
  address: Fixed<string>;
  status: Fixed<number>;
  before_json: Fixed<string | null>;
  after_json: Fixed<string | null>;
};

/** Secrets of teams. */
export type SecretTable = {
  secret_id: Fixed<string>;
  team_id: Fixed<string>;
  name: Fixed<string>;
  current_version: number;
  /** Output of `seal`. */
  sealed_value: string;
  metadata_json: string;
  created_at_us: Fixed<number>;
  updated_at_us: number;
};

/** An hour in which a team ran sandboxes of a template. */
type TemplateHourTable = {
  team_id: Fixed<string>;
  /** Start of the hour, epoch seconds. */
  hour_seconds: Fixed<number>;
  template_id: Fixed<string>;
  /** The sum of the sandboxes that ran at each of its minutes. */
  sandbox_minutes: number;
  /** The last minute in the sum, epoch seconds: each counts once, however many processes watch. */
  counted_seconds: number;
};

/** A minute in which sandboxes of a team ran or were started. */
type TeamMetricTable = {
  team_id: Fixed<string>;
  /** Start of the minute, epoch seconds. */
  at_seconds: Fixed<number>;
  /** The most that were seen running at a time. */
  concurrent: number;
  /** How many were running at the last look. */
  latest: number;
  starts: number;
};

/** A sandbox that is gone. */
type PastSandboxTable = {
  sandbox_id: Fixed<string>;
  /** Not a foreign key: a team may be deleted first. */
  team_id: Fixed<string>;
  node_id: Fixed<string>;
  ended_at_us: Fixed<number>;
  /** Its log is in the store of the cluster. */
  logs_stored: ColumnType<0 | 1, 0 | 1 | undefined, 0 | 1>;
};

/** Something that happened. Written in the transaction of the change itself; never modified. */
type EventTable = {
  /** Events of one subject have ascending sequences. */
  sequence: Generated<number>;
  event_id: Fixed<string>;
  team_id: Fixed<string>;
  type: Fixed<EventType>;
  subject_kind: Fixed<EventSubject>;
  subject_id: Fixed<string>;
  at_us: Fixed<number>;
  /** `LifecycleEvent`, as it is answered and delivered. */
  body_json: Fixed<string>;
};

/** Webhooks of teams. */
export type WebhookTable = {
  webhook_id: Fixed<string>;
  team_id: Fixed<string>;
  name: string;
  url: string;
  enabled: Flag;
  /** The wanted types, each between commas: on both databases a `like` tests for one. */
  types_text: string;
  /** Output of `seal`. */
  sealed_secret: string;
  /** The last attempt failed. */
  failing: Flag;
  created_at_us: Fixed<number>;
  updated_at_us: number;
};

/** One event for one webhook. */
type WebhookDeliveryTable = {
  webhook_id: Fixed<string>;
  sequence: Fixed<number>;
  /** `kind:ID`: deliveries with the same subject go out in order. */
  subject: Fixed<string>;
  state: DeliveryState;
  /** A process works on it, until `due_at_us` at most. */
  claimed: Flag;
  attempts: number;
  due_at_us: number;
  last_status: number | null;
  last_error: string | null;
  finished_at_us: number | null;
};

/** Volumes of teams. */
export type VolumeTable = {
  volume_id: Fixed<string>;
  team_id: Fixed<string>;
  node_id: string;
  name: Fixed<string>;
  size_mib: Fixed<number>;
  created_at_us: Fixed<number>;
  /** The machine to which its content is moving. */
  moving_to: string | null;
  /** The process that moves or copies it. */
  replica_id: string | null;
  /** Name of its newest copy among the blobs. */
  copy_id: string | null;
  copied_at_us: number | null;
  /** The state of the content in that copy, as its machine counts. */
  copied_change_us: number | null;
};

/** The sandboxes, running or paused, that have a volume. */
type SandboxVolumeTable = { sandbox_id: Fixed<string>; volume_id: Fixed<string> };

/** One row: the installation of this state. */
type InstallationTable = {
  installation_id: string;
  /** Identifies the seed that belongs to it, without revealing the seed. */
  seed_digest: string;
  /** Counts starts, and minutes of running: of two copies of the state, the older one has the smaller number. */
  generation: number;
  /**
   * When an operator accepted a database that is older than what the node keeps. Null: never, or it was settled since.
   */
  accepted_at_us: number | null;
};

/** Volumes whose content must not be found any more: of deletes, and of creates that have not finished. */
type VolumeRemovalTable = { volume_id: Fixed<string>; node_id: Fixed<string>; noted_at_us: Fixed<number> };

/** The api processes that share this database. */
type ReplicaTable = {
  replica_id: Fixed<string>;
  /** Where it runs: a later process of the same name replaces it. */
  name: Fixed<string>;
  /** Alive until then, in the database's time, unless it extends that. */
  until_us: number;
};

/** How far PostgreSQL's clock is known to be wrong. One row, of place 1, or none. */
type ClockTable = {
  place: Fixed<number>;
  /** Added to its time by all who share it. */
  correction_us: number;
  /** Grows with each change. */
  revision: number;
};

/** The history of the PostgreSQL database that this state was last used in. One row, of place 1. */
type TimelineTable = {
  place: Fixed<number>;
  /** Identifier of the cluster of databases, made by `initdb`. */
  system_id: string;
  /** Grows with each promotion of a standby. */
  timeline: number;
  /** When it last changed. Null: never. */
  changed_at_us: number | null;
};
