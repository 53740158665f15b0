import { isAbsolute } from 'node:path';
import { type EgressPolicy, isDomainPattern, parseBlock } from '../../protocol/network/network.ts';
import type { Level } from '../../base/telemetry/log.ts';
import type { ServiceAccount } from '../../protocol/cluster.ts';
import { volumeMiBMin } from '../../protocol/api/team.ts';
import type { BuildsAllowed } from '../../protocol/build.ts';
import { type DriverName, driverNames } from '../../protocol/driver.ts';

/** What the text of a setting must be, as the end of a sentence, if it is not. */
export class Wrong {
  readonly mustBe: string;
  constructor(mustBe: string) {
    this.mustBe = mustBe;
  }
}

/** An absolute path. */
export const path = (text: string) => (isAbsolute(text) ? text : new Wrong('an absolute path'));

/** A port; 0: any free port. */
export const portNumber = (text: string) =>
  /^\d{1,5}$/.test(text) && Number(text) < 65_536 ? Number(text) : new Wrong('a port, 0 to 65535 (0: a free one)');
const levels: readonly Level[] = ['debug', 'info', 'warn', 'error'];

/** A level of the log. */
export const level = (text: string) => levels.find(name => name === text) ?? new Wrong(`one of ${levels.join(', ')}`);

/** A domain name without port. */
export const domainName = (text: string) =>
  /^[a-z0-9-]+(\.[a-z0-9-]+)*$/i.test(text) ? text.toLowerCase() : new Wrong('a domain name without port');

/** An IP address. */
export const address = (text: string) =>
  /^[0-9a-f.:]+$/i.test(text) ? text : new Wrong('an IP address of this machine');

/** The URL of a PostgreSQL database. */
export const postgresUrl = (text: string) =>
  /^postgres(ql)?:\/\//.test(text) ? text : new Wrong('a URL that starts with postgres://');

/** Megabits a second. */
export const bandwidth = (text: string) =>
  /^[1-9]\d{0,5}$/.test(text) ? Number(text) : new Wrong('a whole number of megabits a second, at least 1');

/** 0 or 1. */
export const onOrOff = (text: string) => (/^[01]$/.test(text) ? text === '1' : new Wrong('0 or 1'));

/** A whole number within bounds. */
export const numberFrom = (min: number, max: number) => (text: string) =>
  /^\d{1,4}$/.test(text) && Number(text) >= min && Number(text) <= max
    ? Number(text)
    : new Wrong(`a whole number from ${min} to ${max}`);

/** A host and its port. */
export const hostAndPort = (text: string) => {
  const [, host = '', port = ''] = /^([a-z0-9.-]{1,253}):([1-9]\d{0,4})$/i.exec(text) ?? [];
  return host !== '' && Number(port) < 65_536 ? { host, port: Number(port) } : new Wrong('host:port, without a scheme');
};

const labelsMax = 20;
const label = /^([a-z0-9][a-z0-9._/-]{0,62})=([A-Za-z0-9._-]{1,63})$/;

/** Labels of a machine. */
export const labels = (text: string) => {
  const pairs = text.split(',').map(pair => label.exec(pair));
  const isRight = pairs.length <= labelsMax && pairs.every(pair => pair !== null);
  return isRight
    ? Object.fromEntries(pairs.map(pair => [pair?.[1] ?? '', pair?.[2] ?? '']))
    : new Wrong(`at most ${labelsMax} pairs NAME=VALUE of letters, digits, dots, dashes and underscores, with commas`);
};

/** Whole gibibytes. */
export const gibibytes = (text: string) =>
  /^\d{1,5}$/.test(text) ? Number(text) : new Wrong('a whole number of gibibytes');

/** The policy of build steps. */
export const buildNetwork = (text: string): EgressPolicy | Wrong => {
  if (text === 'internet') return { internetAccess: true };
  if (text === 'none') return { internetAccess: false };
  const allowOut = text.split(',').map(item => item.trim().toLowerCase());
  const isDestination = (item: string) => isDomainPattern(item) || parseBlock(item) !== undefined;
  return allowOut.every(isDestination)
    ? { internetAccess: false, allowOut }
    : new Wrong('internet, none, or domains and addresses that build steps may reach, separated by commas');
};

/** Some of the offered values, or none. */
export const listOf = (offered: readonly string[]) => (text: string) => {
  if (text === 'none') return [];
  const list = text.split(',').map(item => item.trim());
  return list.every(item => offered.includes(item))
    ? list
    : new Wrong(`none, or names out of ${offered.join(', ')}, separated by commas`);
};

/** The path of an archive, or the name of an image. */
export const imageOrArchive = (text: string) =>
  isAbsolute(text) || /^[a-z0-9][\w.:/@-]*$/i.test(text)
    ? text
    : new Wrong('the absolute path of an archive, or the name of an image');

/** Size of a volume, MiB. */
export const volumeMiB = (text: string) =>
  /^\d{2,8}$/.test(text) && Number(text) >= volumeMiBMin
    ? Number(text)
    : new Wrong(`a whole number of MiB, at least ${volumeMiBMin}`);

/** A URL of HTTP. */
export const httpUrl = (text: string) =>
  /^https?:\/\//.test(text) && URL.canParse(text) ? text : new Wrong('a URL that starts with http:// or https://');

/** It is put into tokens unchanged, and paths are appended to it. */
export const issuerUrl = (text: string) =>
  /^https?:\/\//.test(text) && URL.canParse(text) && !/[/?#]$/.test(text)
    ? text
    : new Wrong('a URL that starts with http:// or https:// and does not end in a slash');

/** A share, 0 to 1. */
export const ratio = (text: string) =>
  /^(0|1)(\.\d+)?$/.test(text) && Number(text) <= 1 ? Number(text) : new Wrong('a number from 0 to 1');

/** Source: OpenTelemetry specification, "Specifying headers via environment variables". */
export const headerList = (text: string) => {
  const pairs = text.split(',').map(pair => /^\s*([\w!#$%&'*+.^`|~-]+)\s*=([^\r\n]*)$/.exec(pair));
  const entries = pairs.flatMap(pair => (pair ? [[pair[1] ?? '', decoded((pair[2] ?? '').trim())]] : []));
  return entries.length === pairs.length
    ? (Object.fromEntries(entries) as Record<string, string>)
    : new Wrong('name=value pairs, separated by commas');
};
const decoded = (text: string) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a value with a percent sign that was not encoded
  }
};

/** Size of a reserve, MiB. */
export const reserveMiB = (text: string) =>
  /^\d{2,7}$/.test(text) && Number(text) >= reserveMiBMin
    ? Number(text)
    : new Wrong(`a whole number of MiB, at least ${reserveMiBMin}`);
const reserveMiBMin = 64;

/** Size of logs, MiB. */
export const logsMiB = (text: string) =>
  /^[1-9]\d{0,6}$/.test(text) ? Number(text) : new Wrong('a whole number of MiB, at least 1');
const buildsAllowedFor: readonly BuildsAllowed[] = ['on', 'admin', 'off'];

/** Who may build. */
export const buildsAllowed = (text: string) =>
  buildsAllowedFor.find(name => name === text) ?? new Wrong(`one of ${buildsAllowedFor.join(', ')}`);

/** The name of a driver. */
export const driverName = (text: string) =>
  driverNames.find(name => name === text) ?? new Wrong(`one of ${driverNames.join(', ')}`);
/** As `newTemplateId` makes them. */
const templateId = /^[a-z0-9]{20}$/;

/** Drivers by template: `base=gvisor`. */
export const templateDrivers = (text: string) => {
  const entries = text.split(',').map(entry => /^\s*([a-z0-9_-]+(?:\/[a-z0-9_-]+)?)=(\w+)\s*$/i.exec(entry));
  const drivers = new Map<string, DriverName>();
  for (const [, reference = '', name = ''] of entries.map(entry => entry ?? [])) {
    const driver = driverName(name);
    const takesName = driver === 'crun' && !templateId.test(reference);
    if (reference === '' || driver instanceof Wrong || takesName)
      return new Wrong(
        'templates with their driver, e.g. base=gvisor,team/tools=gvisor by name, or 7k2m9x4q8r1t5v3w6y0z=crun by ' +
          'ID: names, which teams may take, lead to gvisor alone',
      );
    drivers.set(reference.toLowerCase(), driver);
  }
  return drivers;
};

/** IPv4 addresses. */
export const addressList = (text: string) => {
  const list = text.split(',').map(item => item.trim());
  return list.every(item => /^\d{1,3}(\.\d{1,3}){3}$/.test(item))
    ? list
    : new Wrong('IPv4 addresses, separated by commas');
};

/** A text without spaces, e.g. a name. */
export const wordOf = (what: string) => (text: string) => (/^[!-~]{1,256}$/.test(text) ? text : new Wrong(what));

/** `NAMESPACE/NAME` of a service account of Kubernetes. */
export const serviceAccount = (text: string): ServiceAccount | Wrong => {
  const [, namespace, name] = /^([a-z0-9-]{1,63})\/([a-z0-9.-]{1,253})$/.exec(text) ?? [];
  return namespace === undefined || name === undefined
    ? new Wrong('NAMESPACE/NAME of a service account')
    : { namespace, name };
};

/** Where a cluster keeps what outlives its machines: a directory, or a bucket and a key prefix. */
export const storePlace = (text: string) => {
  if (isAbsolute(text)) return { kind: 'directory' as const, path: text };
  const [, bucket, prefix = ''] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,62})((?:\/[\w.-]+)*)\/?$/.exec(text) ?? [];
  return bucket === undefined
    ? new Wrong('the absolute path of a directory, or s3://BUCKET or s3://BUCKET/PREFIX')
    : { kind: 's3' as const, bucket, prefix: prefix.slice(1) };
};
