import { AtollError } from '../../../../base/error.ts';
import { networkBounds } from '../../../../protocol/api/network.ts';
import type { SandboxNetworkConfig } from '../../../../protocol/api/network.ts';
import { isDomainPattern } from '../../../../protocol/network/network.ts';
import { placeholdersIn } from './placeholders.ts';
import type { Features } from '../../features.ts';

/** RFC 9110 tokens. */
const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** RFC 9110 field values: visible characters, space and tab inside. */
const headerValue = /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/;

/** Whether a text can be the value of a header. */
export const isHeaderValue = (text: string): boolean => headerValue.test(text);

/** Checks header rules by domain. Throws `invalid` naming the rule at fault. */
export function checkRules(
  rules: NonNullable<SandboxNetworkConfig['rules']>,
  { prefix, features, tokens }: { prefix: string; features: Features; tokens: readonly string[] },
): void {
  const domains = Object.entries(rules);
  if (domains.length > networkBounds.ruleDomainsMax) {
    throw new AtollError(
      'invalid',
      `${prefix}rules: has ${domains.length} domains, the most is ${networkBounds.ruleDomainsMax}`,
    );
  }
  for (const [domain, list] of domains) {
    const field = `${prefix}rules["${domain}"]`;
    if (domain.length > networkBounds.ruleDomainCharactersMax || domain === '*' || !isDomainPattern(domain)) {
      throw new AtollError(
        'invalid',
        `${field}: is not a domain name of at most ${networkBounds.ruleDomainCharactersMax} characters`,
      );
    }
    for (const rule of list)
      checkHeaders(`${field}[0].transform.headers`, Object.entries(rule.transform?.headers ?? {}), tokens);
  }
  if (new Set(domains.map(([domain]) => domain.toLowerCase())).size < domains.length) {
    throw new AtollError('invalid', `${prefix}rules: names a domain twice`);
  }
  if (domains.length > 0 && !features.headerRules) {
    throw new AtollError('invalid', `${prefix}rules: header rules are not available in this installation`);
  }
}

function checkHeaders(field: string, headers: Array<[string, string]>, tokens: readonly string[]): void {
  const { ruleHeadersMax, headerNameCharactersMax, headerValueBytesMax } = networkBounds;
  if (headers.length > ruleHeadersMax) {
    throw new AtollError('invalid', `${field}: has ${headers.length} headers, the most is ${ruleHeadersMax}`);
  }
  for (const [name, value] of headers) {
    if (name.length > headerNameCharactersMax || !headerName.test(name)) {
      throw new AtollError(
        'invalid',
        `${field}: "${name}" is not a header name of 1 to ${headerNameCharactersMax} characters`,
      );
    }
    if (Buffer.byteLength(value) > headerValueBytesMax || !headerValue.test(value)) {
      throw new AtollError(
        'invalid',
        `${field}["${name}"]: is not a header value of at most ${headerValueBytesMax} bytes`,
      );
    }
    const unknown = placeholdersIn(value, `${field}["${name}"]`).find(
      placeholder => placeholder.kind === 'token' && !tokens.includes(placeholder.name),
    );
    if (unknown) throw new AtollError('invalid', `${field}["${name}"]: iam.tokens has no token "${unknown.name}"`);
  }
}
