import { AtollError } from '../../base/error.ts';
import { networkBounds } from '../../protocol/api/network.ts';
import type { SandboxNetworkConfig } from '../../protocol/api/network.ts';
import type { EgressPolicy } from '../../protocol/network.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import { findSecret } from '../store/secrets.ts';
import type { TeamRecord } from '../store/team.ts';
import type { App } from './context.ts';
import { placeholdersIn, replaceEach } from './header-placeholders.ts';
import { egressPolicyOf } from './network-config.ts';
import { openNetwork } from './network-secrets.ts';
import { isHeaderValue } from './network-rules.ts';
import { secretValue } from './secrets.ts';

/** Checks that the team has the secrets that the header rules name, and that they can be in headers. Throws `invalid`. */
export async function checkRuleSecrets(app: App, team: TeamRecord, network: SandboxNetworkConfig, prefix: string): Promise<void> {
  const names = secretsNamedBy(network);
  if (names.length > networkBounds.ruleSecretsMax) throw new AtollError('invalid', `${prefix}rules: name ${names.length} secrets, the most is ${networkBounds.ruleSecretsMax}`);
  for (const name of names) {
    const secret = await findNamed(app, team.teamId, name);
    if (!secret) throw new AtollError('invalid', `${prefix}rules: the team has no secret "${name}"`);
    if (!canBeInHeader(secretValue(app, secret))) {
      throw new AtollError('invalid', `${prefix}rules: secret "${name}" can't be in a header: it is longer than ${networkBounds.secretInHeaderBytesMax} bytes, or has line breaks`);
    }
  }
}

/**
 * What a sandbox's configuration lets out, as nodes take it, with the present values of secrets. A header whose secret is
 * gone is left out: requests go without it, and never with the placeholder.
 */
export async function egressPolicyFor(app: App, sandbox: SandboxRecord): Promise<EgressPolicy> {
  const policy = egressPolicyOf({ allowInternetAccess: sandbox.allowInternetAccess, network: openNetwork(app, sandbox) });
  if (!policy.headerRules) return policy;
  const values = new Map<string, string>();
  for (const name of secretsNamedIn(Object.values(policy.headerRules).flatMap(headers => Object.values(headers)))) {
    const secret = await findNamed(app, sandbox.teamId, name);
    const value = secret && secretValue(app, secret);
    if (value && canBeInHeader(value)) values.set(name, value);
    else app.log.warn('a header is not sent, because its secret is gone or can’t be in one', { sandboxId: sandbox.sandboxId, secret: name });
  }
  const filled = (headers: Record<string, string>) =>
    Object.fromEntries(
      Object.entries(headers).flatMap(([name, value]) => {
        const isWhole = placeholdersIn(value, name).every(placeholder => placeholder.kind === 'secret' && values.has(placeholder.name));
        return isWhole ? [[name, replaceEach(value, name, placeholder => values.get(placeholder.name) ?? '')]] : [];
      }),
    );
  return { ...policy, headerRules: Object.fromEntries(Object.entries(policy.headerRules).map(([domain, headers]) => [domain, filled(headers)])) };
}

/** The secrets that the header rules name, as they name them, each once. */
export const secretsNamedBy = (network: SandboxNetworkConfig): string[] => secretsNamedIn(headerValuesOf(network));

function headerValuesOf({ rules = {} }: SandboxNetworkConfig): string[] {
  return Object.values(rules).flatMap(list => list.flatMap(rule => Object.values(rule.transform?.headers ?? {})));
}

function secretsNamedIn(values: readonly string[]): string[] {
  const names = values.flatMap(value => placeholdersIn(value, 'rules').flatMap(({ kind, name }) => (kind === 'secret' ? [name] : [])));
  return [...new Set(names)];
}

const findNamed = (app: App, teamId: string, name: string) => findSecret(app.store.db, teamId, name.trim().toLowerCase());

const canBeInHeader = (value: string): boolean => Buffer.byteLength(value) <= networkBounds.secretInHeaderBytesMax && isHeaderValue(value);
