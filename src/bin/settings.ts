import { isAbsolute } from 'node:path';
import { AtollError } from '../base/error.ts';
import type { Level } from '../base/log.ts';
import { type EgressPolicy, isDomainPattern, parseBlock } from '../protocol/network.ts';
import { offeredTemplates } from './offered-templates.ts';
import { volumeMiBMin } from '../protocol/api/team.ts';
import type { BuildsAllowed } from '../protocol/build.ts';
import type { DriverName } from '../protocol/node.ts';

/** The settings of an installation. docs/configuration.md describes each. */
export type Settings = {
  dataDir: string;
  cacheDir: string;
  host: string;
  port: number;
  domain: string;
  logLevel: Level;
  /** Undefined: no TLS port. */
  tlsPort: number | undefined;
  /** PEM files of the TLS port, both or neither; without them a local authority signs. */
  tlsCertificate: string | undefined;
  tlsKey: string | undefined;
  /** Only a load balancer can reach the ports, and what it says of its clients is believed. */
  trustForwarded: boolean;
  /** Sandboxes without a token of their own are refused. */
  requireSecure: boolean;
  /** Undefined: SQLite in the data directory. */
  databaseUrl: string | undefined;
  /** An image's name or the path of a root file system's archive; undefined: the base template is made from the distribution's packages. */
  baseImage: string | undefined;
  /** Shipped templates that are built in the background after a start. */
  templates: string[];
  nameservers: string[];
  /** PEM file, or folder of them, with authorities that builds of templates trust beside their image's own, e.g. of a proxy on the way out. */
  buildAuthorities: string;
  /** Disk that builds may keep for later builds beside what templates need: steps, cache mounts, uploaded files. */
  buildCacheGiB: number;
  /** What build steps reach. */
  buildNetwork: EgressPolicy;
  /** Who may build templates, beside those that come with the platform. */
  builds: BuildsAllowed;
  /** Blank sandboxes that wait to be claimed. */
  poolSize: number;
  /** What isolates sandboxes whose template is not named in `templateDrivers`. */
  driver: DriverName;
  /** Templates whose sandboxes are isolated otherwise: on gVisor by name, namespace/name or ID, on crun by ID. */
  templateDrivers: ReadonlyMap<string, DriverName> | undefined;
  /** For how long a sandbox that was paused with its memory can be let go again at once. */
  frozenSeconds: number;
  /** What each sandbox may send, and receive; undefined: as much as there is. */
  sandboxBandwidthMbit: number | undefined;
  /** TLS connections that a policy allows by their name are opened, so that what is asked inside can be looked at. */
  egressOpenTls: boolean;
  /** Of each sandbox, so many hours of what it used are kept, and as long when it is gone. */
  metricsHours: number;
  teamMetricsDays: number;
  /** Webhooks may go to addresses of this machine and of private networks. */
  webhooksToPrivate: boolean;
  /** Size of new volumes, where a team's own limits do not say otherwise. */
  volumeMiB: number;
  /** For how long a token for a volume's content is good. */
  volumeTokenHours: number;
  /** What the logs of all sandboxes may take on the disk. */
  sandboxLogsMiB: number;
  /** What nobody but the platform itself may take of the disk, MiB. */
  diskReserveMiB: number;
  /** What processes write is put into the logs of their sandboxes. */
  sandboxLogOutput: boolean;
  /** Answers say how long each step took. */
  trace: boolean;
  /** Where spans go, by OTLP over HTTP: for the first, `/v1/traces` is put behind it. Neither: nowhere. */
  otlpEndpoint: string | undefined;
  otlpTracesEndpoint: string | undefined;
  /** Sent with every export, e.g. a credential. */
  otlpHeaders: Record<string, string> | undefined;
  serviceName: string;
  /** Of the requests whose clients do not trace, the share that is. */
  traceRatio: number;
};

type Setting<T> = {
  variable: string;
  /** As it would be written in the environment; undefined: may be left out. */
  fallback: string | undefined;
  /** The value, or a sentence that says what it must be. */
  parse(text: string): T | Wrong;
  /** A wrong value is not repeated in the message. */
  isSecret?: boolean;
};

class Wrong {
  readonly mustBe: string;
  constructor(mustBe: string) {
    this.mustBe = mustBe;
  }
}

const path = (text: string) => (isAbsolute(text) ? text : new Wrong('an absolute path'));
const portNumber = (text: string) => (/^\d{1,5}$/.test(text) && Number(text) < 65_536 ? Number(text) : new Wrong('a port, 0 to 65535 (0: a free one)'));
const levels: readonly Level[] = ['debug', 'info', 'warn', 'error'];
const level = (text: string) => levels.find(name => name === text) ?? new Wrong(`one of ${levels.join(', ')}`);
const domainName = (text: string) => (/^[a-z0-9-]+(\.[a-z0-9-]+)*$/i.test(text) ? text.toLowerCase() : new Wrong('a domain name without port'));
const address = (text: string) => (/^[0-9a-f.:]+$/i.test(text) ? text : new Wrong('an IP address of this machine'));
const postgresUrl = (text: string) => (/^postgres(ql)?:\/\//.test(text) ? text : new Wrong('a URL that starts with postgres://'));
const bandwidth = (text: string) => (/^[1-9]\d{0,5}$/.test(text) ? Number(text) : new Wrong('a whole number of megabits a second, at least 1'));
const onOrOff = (text: string) => (/^[01]$/.test(text) ? text === '1' : new Wrong('0 or 1'));
const numberFrom = (min: number, max: number) => (text: string) =>
  /^\d{1,4}$/.test(text) && Number(text) >= min && Number(text) <= max ? Number(text) : new Wrong(`a number from ${min} to ${max}`);
const poolSizeMax = 64;
const frozenSecondsMax = 3600;
const metricsHoursMax = 24 * 30;
const teamMetricsDaysMax = 400;
const gibibytes = (text: string) => (/^\d{1,5}$/.test(text) ? Number(text) : new Wrong('a whole number of gibibytes'));
const buildNetwork = (text: string): EgressPolicy | Wrong => {
  if (text === 'internet') return { internetAccess: true };
  if (text === 'none') return { internetAccess: false };
  const allowOut = text.split(',').map(item => item.trim().toLowerCase());
  const isDestination = (item: string) => isDomainPattern(item) || parseBlock(item) !== undefined;
  return allowOut.every(isDestination) ? { internetAccess: false, allowOut } : new Wrong('internet, none, or domains and addresses that build steps may reach, separated by commas');
};
const templateList = (text: string) => {
  if (text === 'none') return [];
  const list = text.split(',').map(item => item.trim());
  return list.every(item => offeredTemplates.includes(item)) ? list : new Wrong(`none, or names out of ${offeredTemplates.join(', ')}, separated by commas`);
};
const imageOrArchive = (text: string) => (isAbsolute(text) || /^[a-z0-9][\w.:/@-]*$/i.test(text) ? text : new Wrong('the absolute path of an archive, or the name of an image'));
const volumeMiB = (text: string) => (/^\d{2,8}$/.test(text) && Number(text) >= volumeMiBMin ? Number(text) : new Wrong(`a whole number of MiB, at least ${volumeMiBMin}`));
const volumeTokenHoursMax = 8760;
const httpUrl = (text: string) => (/^https?:\/\//.test(text) && URL.canParse(text) ? text : new Wrong('a URL that starts with http:// or https://'));
const ratio = (text: string) => (/^(0|1)(\.\d+)?$/.test(text) && Number(text) <= 1 ? Number(text) : new Wrong('a number from 0 to 1'));
/** Source: OpenTelemetry specification, "Specifying headers via environment variables". */
const headerList = (text: string) => {
  const pairs = text.split(',').map(pair => /^\s*([\w!#$%&'*+.^`|~-]+)\s*=([^\r\n]*)$/.exec(pair));
  const entries = pairs.flatMap(pair => (pair ? [[pair[1] ?? '', decoded((pair[2] ?? '').trim())]] : []));
  return entries.length === pairs.length ? (Object.fromEntries(entries) as Record<string, string>) : new Wrong('name=value pairs, separated by commas');
};
const decoded = (text: string) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};
const reserveMiB = (text: string) => (/^\d{2,7}$/.test(text) && Number(text) >= reserveMiBMin ? Number(text) : new Wrong(`a whole number of MiB, at least ${reserveMiBMin}`));
const reserveMiBMin = 64;
const logsMiB = (text: string) => (/^[1-9]\d{0,6}$/.test(text) ? Number(text) : new Wrong('a whole number of MiB, at least 1'));
const buildsAllowedFor: readonly BuildsAllowed[] = ['on', 'admin', 'off'];
const buildsAllowed = (text: string) => buildsAllowedFor.find(name => name === text) ?? new Wrong(`one of ${buildsAllowedFor.join(', ')}`);
const driverNames: readonly DriverName[] = ['crun', 'gvisor'];
const driverName = (text: string) => driverNames.find(name => name === text) ?? new Wrong(`one of ${driverNames.join(', ')}`);
/** As `newTemplateId` makes them. */
const templateId = /^[a-z0-9]{20}$/;
const templateDrivers = (text: string) => {
  const entries = text.split(',').map(entry => /^\s*([a-z0-9_-]+(?:\/[a-z0-9_-]+)?)=(\w+)\s*$/i.exec(entry));
  const drivers = new Map<string, DriverName>();
  for (const [, reference = '', name = ''] of entries.map(entry => entry ?? [])) {
    const driver = driverName(name);
    const takesName = driver === 'crun' && !templateId.test(reference);
    if (reference === '' || driver instanceof Wrong || takesName) return new Wrong(`templates with their driver, e.g. base=gvisor,team/tools=gvisor by name, or 7k2m9x4q8r1t5v3w6y0z=crun by ID: names, which teams may take, lead to gvisor alone`);
    drivers.set(reference.toLowerCase(), driver);
  }
  return drivers;
};
const addressList = (text: string) => {
  const list = text.split(',').map(item => item.trim());
  return list.every(item => /^\d{1,3}(\.\d{1,3}){3}$/.test(item)) ? list : new Wrong('IPv4 addresses, separated by commas');
};

/** Every setting with its variable, its default and its check. */
export const settingsTable: { [Name in keyof Settings]: Setting<Exclude<Settings[Name], undefined>> } = {
  dataDir: { variable: 'ATOLL_DATA_DIR', fallback: '/var/lib/atoll', parse: path },
  cacheDir: { variable: 'ATOLL_CACHE_DIR', fallback: '/var/cache/atoll', parse: path },
  host: { variable: 'ATOLL_HOST', fallback: '127.0.0.1', parse: address },
  port: { variable: 'ATOLL_PORT', fallback: '3000', parse: portNumber },
  domain: { variable: 'ATOLL_DOMAIN', fallback: 'localhost', parse: domainName },
  tlsPort: { variable: 'ATOLL_TLS_PORT', fallback: undefined, parse: portNumber },
  tlsCertificate: { variable: 'ATOLL_TLS_CERT', fallback: undefined, parse: path },
  tlsKey: { variable: 'ATOLL_TLS_KEY', fallback: undefined, parse: path },
  trustForwarded: { variable: 'ATOLL_TRUST_FORWARDED', fallback: '0', parse: onOrOff },
  requireSecure: { variable: 'ATOLL_REQUIRE_SECURE', fallback: '0', parse: onOrOff },
  logLevel: { variable: 'ATOLL_LOG_LEVEL', fallback: 'warn', parse: level },
  databaseUrl: { variable: 'ATOLL_DATABASE_URL', fallback: undefined, parse: postgresUrl },
  baseImage: { variable: 'ATOLL_BASE_IMAGE', fallback: undefined, parse: imageOrArchive },
  templates: { variable: 'ATOLL_TEMPLATES', fallback: offeredTemplates.join(','), parse: templateList },
  nameservers: { variable: 'ATOLL_NAMESERVERS', fallback: '8.8.8.8,1.1.1.1', parse: addressList },
  buildAuthorities: { variable: 'ATOLL_BUILD_CA', fallback: '/usr/local/share/ca-certificates', parse: path },
  buildCacheGiB: { variable: 'ATOLL_BUILD_CACHE_GIB', fallback: '20', parse: gibibytes },
  buildNetwork: { variable: 'ATOLL_BUILD_NETWORK', fallback: 'internet', parse: buildNetwork },
  sandboxBandwidthMbit: { variable: 'ATOLL_SANDBOX_BANDWIDTH_MBIT', fallback: undefined, parse: bandwidth },
  egressOpenTls: { variable: 'ATOLL_EGRESS_OPEN_TLS', fallback: '0', parse: onOrOff },
  metricsHours: { variable: 'ATOLL_METRICS_HOURS', fallback: '24', parse: numberFrom(1, metricsHoursMax) },
  teamMetricsDays: { variable: 'ATOLL_TEAM_METRICS_DAYS', fallback: '14', parse: numberFrom(1, teamMetricsDaysMax) },
  webhooksToPrivate: { variable: 'ATOLL_WEBHOOKS_TO_PRIVATE', fallback: '0', parse: onOrOff },
  sandboxLogsMiB: { variable: 'ATOLL_SANDBOX_LOGS_MIB', fallback: '1024', parse: logsMiB },
  diskReserveMiB: { variable: 'ATOLL_DISK_RESERVE_MIB', fallback: '2048', parse: reserveMiB },
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
  poolSize: { variable: 'ATOLL_POOL_SIZE', fallback: '4', parse: numberFrom(0, poolSizeMax) },
  volumeMiB: { variable: 'ATOLL_VOLUME_MIB', fallback: '10240', parse: volumeMiB },
  volumeTokenHours: { variable: 'ATOLL_VOLUME_TOKEN_HOURS', fallback: '24', parse: numberFrom(1, volumeTokenHoursMax) },
  frozenSeconds: { variable: 'ATOLL_FROZEN_SECONDS', fallback: '20', parse: numberFrom(0, frozenSecondsMax) },
};

/** Whether a listen address means all of the machine's. */
export const isWildcard = (host: string): boolean => host === '0.0.0.0' || host === '::';

/**
 * The settings that an environment says. Fails with `invalid`, naming every variable that is wrong and every one that
 * starts with ATOLL_ and is none: a mistyped setting would otherwise do nothing.
 */
export function readSettings(environment: Record<string, string | undefined>): Settings {
  const problems: string[] = [];
  const entries = Object.entries(settingsTable).map(([name, { variable, fallback, parse, isSecret }]) => {
    const text = environment[variable] || fallback;
    const value = text === undefined ? undefined : parse(text);
    if (!(value instanceof Wrong)) return [name, value];
    problems.push(`${variable} ${isSecret ? '' : `is '${text}' and `}must be ${value.mustBe}.`);
    return [name, undefined];
  });
  const known = Object.values(settingsTable).map(({ variable }) => variable);
  for (const variable of Object.keys(environment)) {
    if (variable.startsWith('ATOLL_') && !known.includes(variable)) problems.push(`${variable} is not a setting. There are ${known.join(', ')}.`);
  }
  const given = (name: string) => Boolean(environment[name]);
  if (given('ATOLL_TLS_CERT') !== given('ATOLL_TLS_KEY')) problems.push('ATOLL_TLS_CERT and ATOLL_TLS_KEY belong together: set both or neither.');
  if (given('ATOLL_TLS_CERT') && !given('ATOLL_TLS_PORT')) problems.push('ATOLL_TLS_CERT does nothing without ATOLL_TLS_PORT.');
  if (problems.length > 0) throw new AtollError('invalid', problems.join('\n'));
  return Object.fromEntries(entries) as Settings;
}
