import { destinationOf, firstLabelOf } from '../../../src/protocol/network/hosts.ts';
import {
  contains,
  coversName,
  isDomainPattern,
  isHostName,
  normalName,
  parseAddress,
  parseBlock,
  protectedRange,
  splitHostPort,
} from '../../../src/protocol/network/network.ts';
import { agree, holds, type Target } from '../engine/target.ts';

export const sandboxHosts: Target = {
  name: 'sandbox-hosts',
  corpus: [
    '3000-abc.example.com\n\n\n\n',
    '49983-ABC-x.sandbox.example:3000\n\n\n\n',
    'api.example.com\nabc\n3000\n\n',
    'a\n\n\nabc\n',
    '1-\n\n\n\n',
    'x\nabc\n1\nabd\n2',
  ],
  dictionary: ['-', '.', ':', '65535', '65536', '0', '\n', '%'],
  pumps: [
    { prefix: '', unit: '1', suffix: '' },
    { prefix: '1-', unit: 'a', suffix: '.b' },
    { prefix: '1', unit: '-', suffix: '.b' },
    { prefix: 'x\n', unit: 'a', suffix: '!\n1' },
    { prefix: '1-a', unit: '.', suffix: '' },
  ],
  check(input) {
    const [host, a, b, c, d] = input
      .toString('latin1')
      .split('\n')
      .map(text => (text === '' ? undefined : text));
    const destination = destinationOf(host, { e2bSandboxId: a, e2bSandboxPort: b, svcSandboxId: c, svcSandboxPort: d });
    if (host !== undefined) holds(!/[.:A-Z]/.test(firstLabelOf(host)), 'a label is one');
    if (destination.kind === 'invalid') holds(destination.reason.length < 700, 'a reason is short');
    if (destination.kind !== 'sandbox') return destination.kind;
    holds(
      /^[a-z0-9]+$/.test(destination.sandboxId) && destination.port >= 1 && destination.port <= 65_535,
      'a sandbox has an ID and a port',
    );
    const again = `${destination.port}-${destination.sandboxId}.example`;
    agree(
      destinationOf(again, {
        e2bSandboxId: undefined,
        e2bSandboxPort: undefined,
        svcSandboxId: undefined,
        svcSandboxPort: undefined,
      }),
      { ...destination, by: 'host' },
      'a host that is written is read as the same',
    );
    return `sandbox by ${destination.by}`;
  },
};

/** The numbers of an IPv4 address, as a second opinion. */
const four = (octets: Uint8Array) => [...octets].join('.');

export const networkNames: Target = {
  name: 'network-names',
  corpus: [
    '1.2.3.4',
    '10.0.0.0/8',
    '2001:db8::1',
    '::ffff:1.2.3.4',
    '2001:db8::/32',
    'example.com',
    '*.Example.COM.',
    '[::1]:80',
    'a.b:443',
    '0x7f.1',
    '1.2.3.4.',
    'fe80::1%eth0',
  ],
  dictionary: ['.', ':', '::', '/', '*.', '[', ']', '0x', '%', '/128', '/33', '-', '_'],
  pumps: [
    { prefix: '', unit: 'a.', suffix: '' },
    { prefix: '', unit: ':', suffix: '' },
    { prefix: '', unit: '1', suffix: '.' },
    { prefix: '[', unit: 'a', suffix: '' },
    { prefix: '', unit: '0:', suffix: '1.2.3.4' },
    { prefix: '', unit: '[', suffix: '' },
  ],
  check(input) {
    const text = input.toString('latin1');
    const octets = parseAddress(text);
    const block = parseBlock(text);
    const name = normalName(text);
    const { host, port } = splitHostPort(text);
    holds(port === undefined || (port >= 1 && port <= 65_535 && text.length > host.length), 'a port is one');
    if (octets) {
      holds(octets.length === 4 || octets.length === 16, 'an address has 4 or 16 octets');
      holds(name === undefined && !isDomainPattern(text), 'an address is no name');
      const url = URL.parse(`http://${octets.length === 4 ? text : `[${text}]`}/`);
      if (octets.length === 4) agree(four(octets), url?.hostname, 'an address is what others read');
      // The runtime's URL parser refuses some addresses that end in dots and have the two colons before groups; Node.js
      // accepts them.
      else if (url) agree(parseAddress(url.hostname.slice(1, -1)), octets, 'an address is what others read');
      else holds(text.includes('::') && text.includes('.'), 'an address is one to others too');
      protectedRange(octets);
    }
    if (block) {
      holds(block.bits >= 0 && block.bits <= block.octets.length * 8, 'a block has bits');
      holds(contains(block, block.octets), 'a block holds its own address');
    }
    if (name !== undefined) {
      holds(
        isHostName(name) && name === name.toLowerCase() && !name.endsWith('.'),
        'a name is in the form that is compared',
      );
      agree(normalName(name), name, 'a form that is compared stays as it is');
      holds(
        coversName('*', name) &&
          coversName(name, name) &&
          !coversName(`*.${name}`, name) &&
          coversName(`*.${name}`, `x.${name}`),
        'patterns cover what they say',
      );
    }
    return `${octets?.length} ${block?.version} ${name !== undefined} ${port !== undefined}`;
  },
};
