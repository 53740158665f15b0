import type { CompiledPolicy } from '../../../../../protocol/network/egress-policy.ts';
import { detoursOf } from '../../policy.ts';
import { recordType, type Query } from './message.ts';

/**
 * The rule that forbids looking a name up, if there is one. If a policy names domains, or denies what it does not
 * name, only names that it allows can be asked for: a question for any other name would itself be a way out, to
 * whoever answers for that name. A policy that names no domain but allows one of the `resolvers` by its address has
 * opened that way: sandboxes ask that resolver directly, or, if everything goes through a SOCKS5 server, through the
 * forwarder. Over UDP the forwarder then can't tell which of them was asked, and whoever may ask one of them can ask
 * that.
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
