import type { CompiledPolicy } from '../../../../../protocol/network/egress-policy.ts';
import { detoursOf } from '../../policy.ts';
import { recordType, type Query } from './message.ts';

/**
 * The rule against looking a name up, if there is one. Where a policy names domains, or denies what it does not name,
 * only names that it allows can be asked for: one that nobody may reach would be a way out by itself, to whoever
 * answers for it. Who names no domain but allows one of the `resolvers` by its address has opened that way: it is asked
 * past the forwarder, or, where nothing goes past a SOCKS5 server, by it. Over UDP it can't be told then which of them
 * was asked, and whoever may ask one of them can ask that.
 */
export function refusalOf(
  policy: CompiledPolicy,
  { name, type }: Pick<Query, 'name' | 'type'>,
  resolvers: Uint8Array[],
): string | undefined {
  const { socks } = detoursOf(policy);
  const isOpened = !policy.closed || (socks && resolvers.some(octets => policy.byAddress(octets).allowed));
  if (policy.domains.length === 0 && isOpened) return undefined;
  if (type === recordType.ANY) return 'no questions for all records';
  return policy.byName(name)?.allowed || policy.headersFor(name) ? undefined : policy.fallback;
}
