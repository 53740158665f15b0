import { AtollError } from '../../../../base/error.ts';
import { networkBounds } from '../../../../protocol/api/network.ts';
import type { SandboxNetworkConfig } from '../../../../protocol/api/network.ts';
import type { EgressPolicy } from '../../../../protocol/network/network.ts';
import { findSecret } from '../../../secret/store/secrets.ts';
import type { Identity } from '../../../identity/rules/identity.ts';
import { placeholdersIn, replaceEach, type Placeholder } from './placeholders.ts';
import { egressPolicyOf } from './config.ts';
import { decryptNetwork } from './encrypted.ts';
import { isHeaderValue } from './header-rules.ts';
import { secretValue } from '../../../secret/rules/secrets.ts';
import type { SandboxRecord } from '../../record.ts';
import type { TeamRecord } from '../../../team/record.ts';
import type { Db } from '../../../database/db.ts';
import type { Log } from '../../../../base/telemetry/log.ts';

/**
 * Checks that the team has the secrets named in the header rules, and that their values are valid in headers. Throws
 * `invalid`.
 */
export async function checkRuleSecrets(
  { db, seed }: { db: Db; seed: Uint8Array },
  team: TeamRecord,
  network: SandboxNetworkConfig,
  prefix: string,
): Promise<void> {
  const names = secretsNamedBy(network);
  if (names.length > networkBounds.ruleSecretsMax)
    throw new AtollError(
      'invalid',
      `${prefix}rules: name ${names.length} secrets, the most is ${networkBounds.ruleSecretsMax}`,
    );
  for (const name of names) {
    const secret = await findNamed(db, team.teamId, name);
    if (!secret) throw new AtollError('invalid', `${prefix}rules: the team has no secret "${name}"`);
    if (!canBeInHeader(secretValue(seed, secret))) {
      throw new AtollError(
        'invalid',
        `${prefix}rules: secret "${name}" can't be in a header: it is longer than ` +
          `${networkBounds.secretInHeaderBytesMax} bytes, or has line breaks`,
      );
    }
  }
}

/**
 * The egress policy of a sandbox's configuration, in the form for nodes, with the present values of secrets and
 * identity tokens. A header whose secret or token is gone is left out: requests go without it, and never with the
 * placeholder.
 */
export async function egressPolicyFor(
  { db, log, seed, identity }: { db: Db; log: Log; seed: Uint8Array; identity: Identity },
  sandbox: SandboxRecord,
): Promise<EgressPolicy> {
  const policy = egressPolicyOf({
    allowInternetAccess: sandbox.allowInternetAccess,
    network: decryptNetwork(seed, sandbox),
  });
  if (!policy.headerRules) return policy;
  const values = new Map<string, string>();
  for (const name of secretsNamedIn(Object.values(policy.headerRules).flatMap(headers => Object.values(headers)))) {
    const secret = await findNamed(db, sandbox.teamId, name);
    const value = secret && secretValue(seed, secret);
    if (value && canBeInHeader(value)) values.set(name, value);
    else
      log.warn('a header is not sent, because its secret is gone or can’t be in one', {
        sandboxId: sandbox.sandboxId,
        secret: name,
      });
  }
  const valueOf = ({ kind, name }: Placeholder) => {
    if (kind === 'secret') return values.get(name);
    const audience = sandbox.iam?.tokens?.[name]?.audience;
    return audience === undefined ? undefined : identity.mint(sandbox, audience);
  };
  const filled = (headers: Record<string, string>) =>
    Object.fromEntries(
      Object.entries(headers).flatMap(([name, value]) => {
        const isWhole = placeholdersIn(value, name).every(placeholder => valueOf(placeholder) !== undefined);
        return isWhole ? [[name, replaceEach(value, name, placeholder => valueOf(placeholder) ?? '')]] : [];
      }),
    );
  return {
    ...policy,
    headerRules: Object.fromEntries(
      Object.entries(policy.headerRules).map(([domain, headers]) => [domain, filled(headers)]),
    ),
  };
}

/** The secrets that the header rules name, in their spelling, each once. */
export const secretsNamedBy = (network: SandboxNetworkConfig): string[] => secretsNamedIn(headerValuesOf(network));

function headerValuesOf({ rules = {} }: SandboxNetworkConfig): string[] {
  return Object.values(rules).flatMap(list => list.flatMap(rule => Object.values(rule.transform?.headers ?? {})));
}

function secretsNamedIn(values: readonly string[]): string[] {
  const names = values.flatMap(value =>
    placeholdersIn(value, 'rules').flatMap(({ kind, name }) => (kind === 'secret' ? [name] : [])),
  );
  return [...new Set(names)];
}

const findNamed = (db: Db, teamId: string, name: string) => findSecret(db, teamId, name.trim().toLowerCase());

const canBeInHeader = (value: string): boolean =>
  Buffer.byteLength(value) <= networkBounds.secretInHeaderBytesMax && isHeaderValue(value);
