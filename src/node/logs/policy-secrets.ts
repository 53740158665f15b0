import type { SandboxNetwork } from '../../protocol/node.ts';

/** Shorter words would blank out half of every line. */
const charactersMin = 6;

/** What the policy adds to requests or proves itself with: a server may tell it back to the sandbox, and the log must not. */
export function secretsOf({ headerRules = {}, egressProxy }: SandboxNetwork): string[] {
  const values = Object.values(headerRules).flatMap(headers => Object.values(headers));
  if (egressProxy?.password !== undefined) values.push(egressProxy.password);
  // The scheme of an authorization is none, what follows it is.
  const words = values.flatMap(value => [value, ...value.split(/[\s=;,]+/)]);
  return [...new Set(words)].filter(word => word.length >= charactersMin).sort((a, b) => b.length - a.length);
}

/** Takes `secrets` out of a text. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce((result, secret) => (result.includes(secret) ? result.replaceAll(secret, '***') : result), text);
}
