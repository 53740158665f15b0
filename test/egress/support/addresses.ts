/** Addresses of the lab's internet. */
export const addresses = {
  /** Answers for the names that the tests' policies allow. */
  allowed: '203.0.113.10',
  /** A second address of allowed names. */
  wild: '203.0.113.12',
  /** Another site, which a policy may allow by its address. */
  other: '203.0.113.11',
  /** A name server, a web server and whatever else an attacker runs. */
  attacker: '203.0.113.66',
  socks: '203.0.113.30',
  publicResolver: '8.8.8.8',
  anycast: '1.1.1.1',
} as const;

/** Addresses of a name that a policy allows: a malicious server, and one that does not answer. */
export const hostileServer = '203.0.113.77';
export const silentServer = '203.0.113.250';

export const hostUplink = '192.0.2.2';
/** Another address of the host, which looks like any on the internet. */
export const hostPublic = '203.0.113.200';
export const internetUplink = '192.0.2.1';

/** IPv6 addresses of servers of the lab's internet, by the names of their IPv4 ones. */
export const addressesV6 = { allowed: '2001:db8:f::10', other: '2001:db8:f::11', attacker: '2001:db8:f::66' } as const;

export const uplinkV6 = { host: '2001:db8:1::2', internet: '2001:db8:1::1' } as const;
/** Another address of the host by IPv6. */
export const hostPublicV6 = '2001:db8:2::200';

/** What no sandbox may reach by IPv6 under any policy; all of it is routed to the lab's internet, which counts it. */
export const victimAddressesV6 = [
  'fd00:ec2::254',
  'fd12:3456::5',
  'fc00::5',
  'fec0::5',
  '64:ff9b::a00:5',
  '64:ff9b:1::5',
  '::ffff:10.0.0.5',
  '::10.0.0.5',
  '100::5',
  '2002:a00:5::1',
  '2001::5',
  '4000::5',
];

/** What no sandbox may reach under any policy: a neighbour of the host, a cloud's metadata service, and the like. */
export const victimAddresses = [
  '10.0.0.5',
  '172.16.0.5',
  '192.168.1.5',
  '100.64.0.5',
  '169.254.169.254',
  '192.0.0.8',
  '168.63.129.16',
  '169.254.170.2',
  '100.100.100.200',
  '192.0.0.192',
];
