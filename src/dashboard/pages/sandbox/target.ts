import type { Target } from '../../api/agent.ts';
import { useMay } from '../../api/session.tsx';
import { useSandbox } from './sandbox.tsx';

/**
 * How to reach the selected sandbox. Null unless it runs, because looking must not wake it, and for users who may only
 * look.
 */
export function useTarget(): Target | null {
  const { sandboxId, detail } = useSandbox();
  const may = useMay('developer');
  if (detail?.state !== 'running' || !may) return null;
  return { sandboxId, token: detail.envdAccessToken ?? null };
}
