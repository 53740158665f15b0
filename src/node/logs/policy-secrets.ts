import type { SandboxNetwork } from '../../protocol/node.ts';

/** Shorter words would blank out half of every line. */
const charactersMin = 6;
/**
 * How many secrets are searched for in everything logged. If a policy has more, these are its whole values and the
 * longest of their words.
 */
const secretsMax = 256;
/** The product of the lengths of a word and a text up to which a search in strings takes microseconds at most. */
const stringSearchMax = 1 << 18;

/**
 * The values that the policy adds to requests or proves itself with: a server may repeat them to the sandbox, and the
 * log must not.
 */
function secretsOf({ headerRules = {}, egressProxy }: SandboxNetwork): string[] {
  const values = Object.values(headerRules).flatMap(headers => Object.values(headers));
  if (egressProxy?.password !== undefined) values.push(egressProxy.password);
  // The scheme of an authorization is not secret; what follows it is.
  const words = values.flatMap(value => value.split(/[\s=;,]+/)).sort(longestFirst);
  const all = [...new Set([...values, ...words])].filter(word => word.length >= charactersMin);
  return all.slice(0, secretsMax).sort(longestFirst);
}

/**
 * The secrets that no entry of a sandbox's log may show: those of its policy, and of every policy since then under
 * which this was called. Programs still know what a server once told them, and may print it at any time.
 */
export function keepSecrets(network: () => SandboxNetwork): () => readonly string[] {
  let policy = network();
  let secrets = secretsOf(policy);
  return () => {
    const now = network();
    if (policy === now) return secrets;
    const own = secretsOf(now);
    const all = [...new Set([...own, ...secrets])].slice(0, own.length + secretsMax);
    [policy, secrets] = [now, all.sort(longestFirst)];
    return secrets;
  };
}

const longestFirst = (a: string, b: string) => b.length - a.length;

/** Takes `secrets` out of a text. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  const has = finder(text);
  return secrets.reduce((result, secret) => (has(secret) ? result.replaceAll(secret, '***') : result), text);
}

/**
 * Looks for words in a text. A search in strings is quick unless a text holds almost the whole word everywhere; then
 * its time grows with the product of both lengths. That in bytes grows with their sum, whatever they are.
 */
function finder(text: string): (word: string) => boolean {
  let bytes: Buffer | undefined;
  return word => {
    if (word.length > text.length) return false;
    if (word.length * text.length <= stringSearchMax) return text.includes(word);
    return (bytes ??= Buffer.from(text)).includes(word);
  };
}
