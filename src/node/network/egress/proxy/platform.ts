import type { PlatformInside } from '../proxies/messages.ts';
import type { CompiledPolicy } from '../../../../protocol/network/egress-policy.ts';

/**
 * Whether a name is that of a sandbox's port. Sandboxes may not reach other names of the platform's domain, above all
 * that of its API.
 */
export function isSandboxHost(platform: PlatformInside, name: string): boolean {
  return name.endsWith(`.${platform.domain}`) && /^\d{1,5}-[a-z0-9]+$/.test(name.slice(0, -platform.domain.length - 1));
}

/** The rule that forbids reaching a sandbox's URL, if there is one. */
export function platformRefusal(policy: CompiledPolicy, name: string): string | undefined {
  return !policy.closed || policy.byName(name)?.allowed ? undefined : policy.fallback;
}
