import { expect, test } from 'bun:test';
import {
  Wrong,
  address,
  addressList,
  bandwidth,
  buildNetwork,
  domainName,
  driverName,
  gibibytes,
  headerList,
  hostAndPort,
  httpUrl,
  imageOrArchive,
  issuerUrl,
  labels,
  level,
  listOf,
  logsMiB,
  numberFrom,
  onOrOff,
  path,
  portNumber,
  postgresUrl,
  ratio,
  reserveMiB,
  serviceAccount,
  storePlace,
  templateDrivers,
  volumeMiB,
  wordOf,
} from './values.ts';

/** What a setting accepts, as text and its meaning, and what it refuses. */
type Case = { read: (text: string) => unknown; taken: Record<string, unknown>; refused: string[] };

const many = (count: number, one: (index: number) => string) =>
  Array.from({ length: count }, (_, at) => one(at)).join();
const id = '7k2m9x4q8r1t5v3w6y0z';

const cases: Record<string, Case> = {
  'an absolute path': { read: path, taken: { '/a/b': '/a/b' }, refused: ['a/b', '', './a'] },
  'a port': {
    read: portNumber,
    taken: { '0': 0, '443': 443, '65535': 65_535 },
    refused: ['65536', '-1', '', '1e3', '000080'],
  },
  'a level of the log': { read: level, taken: { warn: 'warn', debug: 'debug' }, refused: ['loud', 'WARN', ''] },
  'a domain name': {
    read: domainName,
    taken: { 'Example.COM': 'example.com', localhost: 'localhost' },
    refused: ['a.b:80', 'a..b', '.a', 'a b', ''],
  },
  'an address': {
    read: address,
    taken: { '0.0.0.0': '0.0.0.0', '::1': '::1' },
    refused: ['all interfaces', '', 'xyz'],
  },
  'a database': {
    read: postgresUrl,
    taken: { 'postgres://h/d': 'postgres://h/d', 'postgresql://h': 'postgresql://h' },
    refused: ['mysql://h', 'h', ' postgres://h'],
  },
  'megabits a second': {
    read: bandwidth,
    taken: { '1': 1, '999999': 999_999 },
    refused: ['0', '-1', '1000000', '1.5'],
  },
  'a switch': { read: onOrOff, taken: { '0': false, '1': true }, refused: ['true', '2', '', '01'] },
  'a number within bounds': {
    read: numberFrom(5, 60),
    taken: { '5': 5, '60': 60 },
    refused: ['4', '61', '', '5.5', '00005'],
  },
  'a host with its port': {
    read: hostAndPort,
    taken: { 'n1.x:65535': { host: 'n1.x', port: 65_535 }, '10.0.0.1:1': { host: '10.0.0.1', port: 1 } },
    refused: ['n1', 'n1:0', 'n1:65536', 'http://n1:80', ':80'],
  },
  labels: {
    read: labels,
    taken: {
      'zone=a,example.com/gpu=A100': { zone: 'a', 'example.com/gpu': 'A100' },
      [many(20, at => `l${at}=x`)]: expect.objectContaining({ l0: 'x', l19: 'x' }),
    },
    refused: ['zone', 'zone=', 'Zone=a', 'zone=a,', many(21, at => `l${at}=x`)],
  },
  gibibytes: { read: gibibytes, taken: { '0': 0, '99999': 99_999 }, refused: ['100000', '1.5', '-1', ''] },
  'the network of builds': {
    read: buildNetwork,
    taken: {
      internet: { internetAccess: true },
      none: { internetAccess: false },
      'Example.com, *.npmjs.org,10.0.0.0/8': {
        internetAccess: false,
        allowOut: ['example.com', '*.npmjs.org', '10.0.0.0/8'],
      },
    },
    refused: ['', 'example.com,', 'http://example.com', 'example.com,10.0.0.0/99'],
  },
  'some of a list': {
    read: listOf(['a', 'b', 'c']),
    taken: { none: [], a: ['a'], 'c, a': ['c', 'a'] },
    refused: ['', 'd', 'a,d', 'a,none'],
  },
  'an image or an archive': {
    read: imageOrArchive,
    taken: { '/a.tar': '/a.tar', 'debian:13-slim': 'debian:13-slim', 'h:5000/a@sha256:0': 'h:5000/a@sha256:0' },
    refused: ['./a.tar', '', 'a b', '-a'],
  },
  'the size of a volume': {
    read: volumeMiB,
    taken: { '16': 16, '99999999': 99_999_999 },
    refused: ['15', '9', '', '100000000'],
  },
  'a URL': {
    read: httpUrl,
    taken: { 'http://h': 'http://h', 'https://h/p/': 'https://h/p/' },
    refused: ['ftp://h', 'h', 'http://', 'http://h:x'],
  },
  'the URL of an issuer': {
    read: issuerUrl,
    taken: { 'https://h': 'https://h', 'http://h/p': 'http://h/p' },
    refused: ['https://h/', 'https://h?', 'https://h#', 'ftp://h', 'http://h:x'],
  },
  'a share': {
    read: ratio,
    taken: { '0': 0, '1': 1, '0.25': 0.25, '1.0': 1 },
    refused: ['1.1', '-0.1', '2', '.5', ''],
  },
  headers: {
    read: headerList,
    taken: { 'a=b, X-C = d=e%20f': { a: 'b', 'X-C': 'd=e f' }, 'a=100%': { a: '100%' }, 'a=': { a: '' } },
    refused: ['a', 'a=b,', '=b', 'a b=c', 'a=b\nc'],
  },
  'the reserve of the disk': {
    read: reserveMiB,
    taken: { '64': 64, '9999999': 9_999_999 },
    refused: ['63', '9', '10000000', ''],
  },
  'the size of logs': { read: logsMiB, taken: { '1': 1, '9999999': 9_999_999 }, refused: ['0', '', '10000000', '01'] },
  'a driver': { read: driverName, taken: { crun: 'crun', gvisor: 'gvisor' }, refused: ['runc', '', 'CRUN'] },
  'drivers by template': {
    read: templateDrivers,
    taken: {
      'Base=gvisor, team/tools=gvisor': new Map([
        ['base', 'gvisor'],
        ['team/tools', 'gvisor'],
      ]),
      [`${id}=crun`]: new Map([[id, 'crun']]),
    },
    // A team may take any name, and a name must not lead to the weaker driver.
    refused: ['base=crun', `${id}x=crun`, 'base', '', 'base=gvisor,', 'base=kvm', 'a/b/c=gvisor'],
  },
  'IPv4 addresses': {
    read: addressList,
    taken: { '8.8.8.8': ['8.8.8.8'], '8.8.8.8, 1.1.1.1': ['8.8.8.8', '1.1.1.1'] },
    refused: ['8.8.8.8,dns.example.org', '', '8.8.8', '8.8.8.8,', '::1'],
  },
  'a word': {
    read: wordOf('a word'),
    taken: { 'a~!b': 'a~!b', ['x'.repeat(256)]: 'x'.repeat(256) },
    refused: ['a b', '', 'x'.repeat(257), 'ä'],
  },
  'a service account': {
    read: serviceAccount,
    taken: { 'atoll/node.pods': { namespace: 'atoll', name: 'node.pods' } },
    refused: ['atoll', 'atoll/', '/node', 'Atoll/node', 'a.b/node', 'a/b/c'],
  },
  'a store': {
    read: storePlace,
    taken: {
      '/srv/store': { kind: 'directory', path: '/srv/store' },
      's3://my.bucket': { kind: 's3', bucket: 'my.bucket', prefix: '' },
      's3://bucket/a/b_c/': { kind: 's3', bucket: 'bucket', prefix: 'a/b_c' },
    },
    refused: ['store', 's3://', 's3://b', 's3://Bucket', 's3://bucket//a', 'https://bucket', 's3://bucket/a b'],
  },
};

test.each(Object.entries(cases))('%s: what is meant is taken, and nothing else', (_, { read, taken, refused }) => {
  for (const [text, value] of Object.entries(taken)) expect({ text, is: read(text) }).toEqual({ text, is: value });
  for (const text of refused) expect({ text, is: read(text) }).toEqual({ text, is: expect.any(Wrong) });
});
