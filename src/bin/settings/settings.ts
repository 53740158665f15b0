import { AtollError } from '../../base/error.ts';
import type { Level } from '../../base/telemetry/log.ts';
import type { EgressPolicy } from '../../protocol/network/network.ts';
import { offeredParts, offeredTemplates, usualTemplates } from '../offered-templates.ts';
import type { BuildsAllowed } from '../../protocol/build.ts';
import type { ServiceAccount } from '../../protocol/cluster.ts';
import type { DriverName } from '../../protocol/driver.ts';
import {
  Wrong,
  labels,
  path,
  portNumber,
  level,
  domainName,
  address,
  postgresUrl,
  bandwidth,
  onOrOff,
  numberFrom,
  hostAndPort,
  gibibytes,
  buildNetwork,
  listOf,
  imageOrArchive,
  volumeMiB,
  httpUrl,
  issuerUrl,
  ratio,
  headerList,
  serviceAccount,
  storePlace,
  wordOf,
  reserveMiB,
  logsMiB,
  buildsAllowed,
  driverName,
  templateDrivers,
  addressList,
} from './values.ts';

/** The settings of an installation. docs/configuration.md describes each. */
export type Settings = {
  dataDir: string;
  cacheDir: string;
  host: string;
  port: number;
  domain: string;
  /** JSON file about the identity provider that people sign in with; undefined: none. */
  oidcFile: string | undefined;
  /** URL at which verifiers of identity tokens reach the API; undefined: the clients' URL. */
  issuer: string | undefined;
  logLevel: Level;
  /** Undefined: no TLS port. */
  tlsPort: number | undefined;
  /** PEM files of the TLS port, both or neither; without them a local authority signs. */
  tlsCertificate: string | undefined;
  tlsKey: string | undefined;
  /** Only a load balancer can reach the ports, and what it says about its clients is trusted. */
  trustForwarded: boolean;
  /** Sandboxes without a token of their own are refused. */
  requireSecure: boolean;
  /** Undefined: SQLite in the data directory. */
  databaseUrl: string | undefined;
  /** Where control reaches this node; nodes of a cluster only. */
  nodeAddress: { host: string; port: number } | undefined;
  /** A node's properties, for sandboxes that ask for them; nodes of a cluster only. */
  nodeLabels: Record<string, string> | undefined;
  /** How many times over a node's CPUs may be promised to sandboxes; nodes of a cluster only. */
  cpuOvercommit: number;
  /** Service account of the pods whose machines may join; control in Kubernetes only. Undefined: invitations only. */
  nodeServiceAccount: ServiceAccount | undefined;
  /** How long a node serves while control can't reach it; then it pauses its sandboxes. */
  isolationSeconds: number;
  /** Where the cluster keeps what must outlive its machines; control only. Undefined: nowhere. */
  store: { kind: 'directory'; path: string } | { kind: 's3'; bucket: string; prefix: string } | undefined;
  /** URL of an S3 store; undefined: AWS's in the region. */
  storeEndpoint: string | undefined;
  storeRegion: string;
  storeKeyId: string | undefined;
  /** One of the two, or neither. */
  storeSecret: string | undefined;
  storeSecretFile: string | undefined;
  /**
   * Name of an image, or path of a root file system archive; undefined: the base template is made from the
   * distribution's packages.
   */
  baseImage: string | undefined;
  /** Shipped templates to build in the background after a start. */
  templates: string[];
  /** Shipped templates to build when somebody first asks for them. */
  templatesOnDemand: string[];
  /** The parts of shipped templates to build; the others are left out. */
  templateParts: string[];
  nameservers: string[];
  /**
   * PEM file, or folder of them: authorities that template builds trust besides their image's own, e.g. that of an
   * outgoing proxy.
   */
  buildAuthorities: string;
  /**
   * Disk space that builds may keep for later builds, besides what templates need: steps, cache mounts, uploaded files.
   */
  buildCacheGiB: number;
  /** Disk space for layers, in a cluster with a store. */
  layersGiB: number;
  /** Network policy of build steps. */
  buildNetwork: EgressPolicy;
  /** Who may build templates besides those that come with the platform. */
  builds: BuildsAllowed;
  /** Standby sandboxes in the pool; undefined: a number that suits the machine. */
  poolSize: number | undefined;
  /** Driver of sandboxes whose template is not in `templateDrivers`. */
  driver: DriverName;
  /** Drivers of some templates: on gVisor by name, namespace/name or ID, on crun by ID. */
  templateDrivers: ReadonlyMap<string, DriverName> | undefined;
  /** How long a sandbox that was paused with its memory can be resumed at once. */
  frozenSeconds: number;
  /** Bandwidth of each sandbox in either direction; undefined: unlimited. */
  sandboxBandwidthMbit: number | undefined;
  /** Opens TLS connections that a policy allows by name, to inspect the requests inside. */
  egressOpenTls: boolean;
  /** Retention of a sandbox's samples, in hours; also after it is gone. */
  metricsHours: number;
  teamMetricsDays: number;
  /** Webhooks may go to addresses of this machine and private networks. */
  webhooksToPrivate: boolean;
  /** Size of new volumes, unless a team's own limits say otherwise. */
  volumeMiB: number;
  /** How long a token for a volume's content is valid. */
  volumeTokenHours: number;
  /** Disk space for the logs of all sandboxes. */
  sandboxLogsMiB: number;
  /** Disk space reserved for the platform, MiB. */
  diskReserveMiB: number;
  /** How fast one disk may be written continuously, MiB a second; 0: no limit. */
  diskWriteMiB: number;
  /** Puts processes' output into the logs of their sandboxes. */
  sandboxLogOutput: boolean;
  /** Answers tell how long each step took. */
  trace: boolean;
  /** URLs for spans, by OTLP over HTTP; `/v1/traces` is appended to the first. Without either, no spans are sent. */
  otlpEndpoint: string | undefined;
  otlpTracesEndpoint: string | undefined;
  /** Sent with every export, e.g. a credential. */
  otlpHeaders: Record<string, string> | undefined;
  serviceName: string;
  /** Share of requests that are traced although their clients do not trace, 0 to 1. */
  traceRatio: number;
};

type Setting<T> = {
  variable: string;
  /** As written in the environment; undefined: may be left out. */
  fallback: string | undefined;
  /** The value, or a sentence that says what it must be. */
  parse(text: string): T | Wrong;
  /** The message does not repeat a wrong value. */
  isSecret?: boolean;
};

const isolationSecondsMax = 3600;
const cpuOvercommitMax = 64;
const poolSizeMax = 64;
const frozenSecondsMax = 3600;
/** More than any disk can do. */
const diskWriteMiBMax = 1_000_000;
const metricsHoursMax = 24 * 30;
const teamMetricsDaysMax = 400;
const volumeTokenHoursMax = 8760;

/** Every setting with its variable, its default and its check. */
export const settingsTable: { [Name in keyof Settings]: Setting<Exclude<Settings[Name], undefined>> } = {
  dataDir: { variable: 'ATOLL_DATA_DIR', fallback: '/var/lib/atoll', parse: path },
  cacheDir: { variable: 'ATOLL_CACHE_DIR', fallback: '/var/cache/atoll', parse: path },
  host: { variable: 'ATOLL_HOST', fallback: '127.0.0.1', parse: address },
  port: { variable: 'ATOLL_PORT', fallback: '3000', parse: portNumber },
  domain: { variable: 'ATOLL_DOMAIN', fallback: 'localhost', parse: domainName },
  issuer: { variable: 'ATOLL_ISSUER', fallback: undefined, parse: issuerUrl },
  oidcFile: { variable: 'ATOLL_OIDC_FILE', fallback: undefined, parse: path },
  tlsPort: { variable: 'ATOLL_TLS_PORT', fallback: undefined, parse: portNumber },
  tlsCertificate: { variable: 'ATOLL_TLS_CERT', fallback: undefined, parse: path },
  tlsKey: { variable: 'ATOLL_TLS_KEY', fallback: undefined, parse: path },
  trustForwarded: { variable: 'ATOLL_TRUST_FORWARDED', fallback: '0', parse: onOrOff },
  requireSecure: { variable: 'ATOLL_REQUIRE_SECURE', fallback: '0', parse: onOrOff },
  logLevel: { variable: 'ATOLL_LOG_LEVEL', fallback: 'warn', parse: level },
  databaseUrl: { variable: 'ATOLL_DATABASE_URL', fallback: undefined, parse: postgresUrl },
  nodeAddress: { variable: 'ATOLL_NODE_ADDRESS', fallback: undefined, parse: hostAndPort },
  nodeLabels: { variable: 'ATOLL_NODE_LABELS', fallback: undefined, parse: labels },
  cpuOvercommit: { variable: 'ATOLL_CPU_OVERCOMMIT', fallback: '4', parse: numberFrom(1, cpuOvercommitMax) },
  nodeServiceAccount: { variable: 'ATOLL_NODE_SERVICE_ACCOUNT', fallback: undefined, parse: serviceAccount },
  isolationSeconds: { variable: 'ATOLL_ISOLATION_SECONDS', fallback: '60', parse: numberFrom(1, isolationSecondsMax) },
  store: { variable: 'ATOLL_STORE', fallback: undefined, parse: storePlace },
  storeEndpoint: { variable: 'ATOLL_STORE_ENDPOINT', fallback: undefined, parse: httpUrl },
  storeRegion: { variable: 'ATOLL_STORE_REGION', fallback: 'us-east-1', parse: wordOf('the name of a region') },
  storeKeyId: { variable: 'ATOLL_STORE_KEY_ID', fallback: undefined, parse: wordOf('the ID of a key, without spaces') },
  storeSecret: { variable: 'ATOLL_STORE_SECRET', fallback: undefined, parse: wordOf('a secret'), isSecret: true },
  storeSecretFile: { variable: 'ATOLL_STORE_SECRET_FILE', fallback: undefined, parse: path },
  baseImage: { variable: 'ATOLL_BASE_IMAGE', fallback: undefined, parse: imageOrArchive },
  templates: { variable: 'ATOLL_TEMPLATES', fallback: usualTemplates.join(','), parse: listOf(offeredTemplates) },
  templatesOnDemand: {
    variable: 'ATOLL_TEMPLATES_ON_DEMAND',
    fallback: offeredTemplates.join(','),
    parse: listOf(offeredTemplates),
  },
  templateParts: { variable: 'ATOLL_TEMPLATE_PARTS', fallback: offeredParts.join(','), parse: listOf(offeredParts) },
  nameservers: { variable: 'ATOLL_NAMESERVERS', fallback: '8.8.8.8,1.1.1.1', parse: addressList },
  buildAuthorities: { variable: 'ATOLL_BUILD_CA', fallback: '/usr/local/share/ca-certificates', parse: path },
  buildCacheGiB: { variable: 'ATOLL_BUILD_CACHE_GIB', fallback: '20', parse: gibibytes },
  layersGiB: { variable: 'ATOLL_LAYERS_GIB', fallback: '100', parse: gibibytes },
  buildNetwork: { variable: 'ATOLL_BUILD_NETWORK', fallback: 'internet', parse: buildNetwork },
  sandboxBandwidthMbit: { variable: 'ATOLL_SANDBOX_BANDWIDTH_MBIT', fallback: undefined, parse: bandwidth },
  egressOpenTls: { variable: 'ATOLL_EGRESS_OPEN_TLS', fallback: '0', parse: onOrOff },
  metricsHours: { variable: 'ATOLL_METRICS_HOURS', fallback: '24', parse: numberFrom(1, metricsHoursMax) },
  teamMetricsDays: { variable: 'ATOLL_TEAM_METRICS_DAYS', fallback: '14', parse: numberFrom(1, teamMetricsDaysMax) },
  webhooksToPrivate: { variable: 'ATOLL_WEBHOOKS_TO_PRIVATE', fallback: '0', parse: onOrOff },
  sandboxLogsMiB: { variable: 'ATOLL_SANDBOX_LOGS_MIB', fallback: '1024', parse: logsMiB },
  diskReserveMiB: { variable: 'ATOLL_DISK_RESERVE_MIB', fallback: '2048', parse: reserveMiB },
  diskWriteMiB: { variable: 'ATOLL_DISK_WRITE_MIB', fallback: '96', parse: numberFrom(0, diskWriteMiBMax) },
  sandboxLogOutput: { variable: 'ATOLL_SANDBOX_LOGS_OUTPUT', fallback: '1', parse: onOrOff },
  trace: { variable: 'ATOLL_TRACE', fallback: '0', parse: onOrOff },
  otlpEndpoint: { variable: 'OTEL_EXPORTER_OTLP_ENDPOINT', fallback: undefined, parse: httpUrl },
  otlpTracesEndpoint: { variable: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', fallback: undefined, parse: httpUrl },
  otlpHeaders: { variable: 'OTEL_EXPORTER_OTLP_HEADERS', fallback: undefined, parse: headerList, isSecret: true },
  serviceName: { variable: 'OTEL_SERVICE_NAME', fallback: 'atoll', parse: text => text },
  traceRatio: { variable: 'OTEL_TRACES_SAMPLER_ARG', fallback: '1', parse: ratio },
  builds: { variable: 'ATOLL_BUILDS', fallback: 'on', parse: buildsAllowed },
  driver: { variable: 'ATOLL_DRIVER', fallback: 'crun', parse: driverName },
  templateDrivers: { variable: 'ATOLL_TEMPLATE_DRIVERS', fallback: undefined, parse: templateDrivers },
  poolSize: { variable: 'ATOLL_POOL_SIZE', fallback: undefined, parse: numberFrom(0, poolSizeMax) },
  volumeMiB: { variable: 'ATOLL_VOLUME_MIB', fallback: '10240', parse: volumeMiB },
  volumeTokenHours: { variable: 'ATOLL_VOLUME_TOKEN_HOURS', fallback: '24', parse: numberFrom(1, volumeTokenHoursMax) },
  frozenSeconds: { variable: 'ATOLL_FROZEN_SECONDS', fallback: '20', parse: numberFrom(0, frozenSecondsMax) },
};

/** Whether a listen address is reachable only from this machine. */
export const isLoopback = (host: string): boolean => host.startsWith('127.') || host === '::1';

/** Whether a listen address means all addresses of the machine. */
export const isWildcard = (host: string): boolean => host === '0.0.0.0' || host === '::';

/**
 * The settings in an environment. Fails with `invalid`, naming every wrong variable and every unknown one that starts
 * with ATOLL_: a mistyped setting would otherwise do nothing.
 */
export function readSettings(environment: Record<string, string | undefined>): Settings {
  const problems: string[] = [];
  const entries = Object.entries(settingsTable).map(([name, { variable, fallback, parse, isSecret }]) => {
    const text = environment[variable] || fallback;
    const value = text === undefined ? undefined : parse(text);
    if (!(value instanceof Wrong)) return [name, value];
    const hides = isSecret || text?.includes('@');
    problems.push(`${variable} ${hides ? '' : `is '${text}' and `}must be ${value.mustBe}.`);
    return [name, undefined];
  });
  const known = Object.values(settingsTable).map(({ variable }) => variable);
  for (const variable of Object.keys(environment)) {
    if (variable.startsWith('ATOLL_') && !known.includes(variable))
      problems.push(`${variable} is not a setting. There are ${known.join(', ')}.`);
  }
  const given = (name: string) => Boolean(environment[name]);
  if (given('ATOLL_TLS_CERT') !== given('ATOLL_TLS_KEY'))
    problems.push('ATOLL_TLS_CERT and ATOLL_TLS_KEY belong together: set both or neither.');
  if (given('ATOLL_TLS_CERT') && !given('ATOLL_TLS_PORT'))
    problems.push('ATOLL_TLS_CERT does nothing without ATOLL_TLS_PORT.');
  // Two ports of 0 ask for free ones, and these differ.
  const tlsPort = Number(environment['ATOLL_TLS_PORT']);
  if (tlsPort > 0 && tlsPort === Number(environment['ATOLL_PORT'] || settingsTable.port.fallback))
    problems.push(`ATOLL_TLS_PORT is ${tlsPort}, as is ATOLL_PORT: set it to another one.`);
  problems.push(...storeProblems(environment));
  if (problems.length > 0) throw new AtollError('invalid', problems.join('\n'));
  return Object.fromEntries(entries) as Settings;
}

/** Contradictions among the store's settings. */
function storeProblems(environment: Record<string, string | undefined>): string[] {
  const given = (name: string) => Boolean(environment[name]);
  const isS3 = environment['ATOLL_STORE']?.startsWith('s3://') ?? false;
  const ofS3 = ['ENDPOINT', 'REGION', 'KEY_ID', 'SECRET', 'SECRET_FILE'].map(name => `ATOLL_STORE_${name}`);
  if (!isS3) return ofS3.filter(given).map(variable => `${variable} does nothing without ATOLL_STORE=s3://BUCKET.`);
  if (given('ATOLL_STORE_SECRET') && given('ATOLL_STORE_SECRET_FILE'))
    return ['ATOLL_STORE_SECRET and ATOLL_STORE_SECRET_FILE are two places for one secret: set one of them.'];
  const hasKey = given('ATOLL_STORE_KEY_ID') && (given('ATOLL_STORE_SECRET') || given('ATOLL_STORE_SECRET_FILE'));
  return hasKey
    ? []
    : ['ATOLL_STORE=s3://… needs ATOLL_STORE_KEY_ID, and ATOLL_STORE_SECRET or ATOLL_STORE_SECRET_FILE.'];
}
