import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { int32, mapOf, oneOf, stringMap } from './primitives.ts';

/** Bounds of a sandbox's network configuration. */
export const networkBounds = {
  addressesMax: 4096,
  ruleDomainsMax: 10,
  ruleDomainCharactersMax: 128,
  rulesPerDomainMax: 1,
  ruleHeadersMax: 20,
  headerNameCharactersMax: 64,
  headerValueBytesMax: 2048,
  /** Different secrets in the rules of one sandbox, and bytes of each. */
  ruleSecretsMax: 50,
  secretInHeaderBytesMax: 16_384,
  proxyCredentialBytesMax: 255,
  httpsPortsMax: 64,
} as const;

/** A SOCKS5 proxy that carries what a sandbox sends (RFC 1928, RFC 1929). */
const EgressProxy = Type.Object(
  {
    address: Type.String({ description: 'host:port of a SOCKS5 proxy' }),
    username: Type.Optional(Type.String()),
    password: Type.Optional(Type.String({ description: 'Never returned' })),
    tls: Type.Optional(
      Type.Object({
        enabled: Type.Optional(
          Type.Literal(false, { description: 'True is refused: the proxy is spoken to without TLS' }),
        ),
        serverName: Type.Optional(Type.String({ description: 'Without effect while TLS is not enabled' })),
        caCert: Type.Optional(Type.String({ description: 'Without effect while TLS is not enabled' })),
      }),
    ),
  },
  { $id: 'EgressProxy' },
);

/** A rule for requests to one domain. */
const NetworkRule = Type.Object(
  {
    transform: Type.Optional(
      Type.Object({ headers: Type.Optional(stringMap('Headers set on requests to the domain')) }),
    ),
  },
  { $id: 'NetworkRule' },
);

const allowOut = Type.Array(Type.String(), {
  maxItems: networkBounds.addressesMax,
  description: 'Addresses, CIDR blocks and domain names that may be reached in spite of denyOut',
});
const denyOut = Type.Array(Type.String(), {
  maxItems: networkBounds.addressesMax,
  description: 'Addresses and CIDR blocks that may not be reached',
});
const dnsServers = Type.Array(Type.String(), {
  maxItems: 0,
  description: 'Others than those of the installation are refused',
});
const rules = mapOf(Type.Array(NetworkRule, { maxItems: networkBounds.rulesPerDomainMax }), 'Header rules by domain');

/** Network settings of a sandbox: what may leave it, and how it is reached. */
export const SandboxNetworkConfig = Type.Object(
  {
    allowPublicTraffic: Type.Optional(
      Type.Boolean({ description: "False: every port but the agent's needs the traffic token. Default true" }),
    ),
    allowOut: Type.Optional(allowOut),
    denyOut: Type.Optional(denyOut),
    egressProxy: Type.Optional(EgressProxy),
    dnsServers: Type.Optional(dnsServers),
    maskRequestHost: Type.Optional(
      Type.String({ description: 'Host that services in the sandbox see; ${PORT} is the requested port' }),
    ),
    rules: Type.Optional(rules),
    httpsPorts: Type.Optional(
      Type.Array(int32({ minimum: 1, maximum: 65_535 }), {
        maxItems: networkBounds.httpsPortsMax,
        description: 'Ports whose service in the sandbox speaks TLS',
      }),
    ),
  },
  { $id: 'SandboxNetworkConfig' },
);
export type SandboxNetworkConfig = Static<typeof SandboxNetworkConfig>;

/** Body of `PUT /sandboxes/{sandboxID}/network`: replaces the egress part as a whole. */
export const SandboxNetworkUpdate = Type.Object(
  {
    allowOut: Type.Optional(allowOut),
    denyOut: Type.Optional(denyOut),
    egressProxy: Type.Optional(EgressProxy),
    dnsServers: Type.Optional(dnsServers),
    rules: Type.Optional(rules),
    allow_internet_access: Type.Optional(Type.Boolean()),
  },
  { $id: 'SandboxNetworkUpdate' },
);
export type SandboxNetworkUpdate = Static<typeof SandboxNetworkUpdate>;

/** Body of the question whether a destination would pass. */
export const NetworkQuestion = Type.Object(
  {
    host: Type.String({ minLength: 1, maxLength: 253, description: 'An address, or the name of a host' }),
    allow_internet_access: Type.Optional(Type.Boolean()),
    allowOut: Type.Optional(allowOut),
    denyOut: Type.Optional(denyOut),
  },
  { $id: 'NetworkQuestion' },
);

/** Whether a destination would pass, and the rule that says so. */
export const NetworkVerdict = Type.Object(
  {
    verdict: oneOf(['passes', 'denied', 'depends']),
    rule: Type.String({ description: 'The rule that decides, as logs name it' }),
  },
  { $id: 'NetworkVerdict' },
);
export type NetworkVerdict = Static<typeof NetworkVerdict>;
