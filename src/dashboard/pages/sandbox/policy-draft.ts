import { useState } from 'react';
import type { SandboxDetail } from '../../../protocol/api/sandbox.ts';

/** A policy in the form: each list has one line per item. */
type PolicyText = { internet: boolean; allow: string; deny: string };

const textOf = ({ network, allowInternetAccess }: SandboxDetail): PolicyText => ({
  internet: allowInternetAccess !== false,
  allow: (network?.allowOut ?? []).join('\n'),
  deny: (network?.denyOut ?? []).join('\n'),
});

const isSame = (a: PolicyText, b: PolicyText) => a.internet === b.internet && a.allow === b.allow && a.deny === b.deny;

/**
 * The policy that the form shows: the current one, whoever changes it, until something is typed; and whether somebody
 * else has changed it since. `isSaving`: until the sandbox has been read again.
 */
export function usePolicyDraft(detail: SandboxDetail, isSaving: boolean) {
  const there = textOf(detail);
  const [draft, setDraft] = useState<{ typed: PolicyText; over: PolicyText; isSaved: boolean } | null>(null);
  // The saved draft is shown until the sandbox shows it: until then, its values are the old ones.
  if (draft?.isSaved && !isSaving) setDraft(null);
  const shown = draft?.typed ?? there;
  return {
    shown,
    isOvertaken: draft !== null && !isSaving && !isSame(draft.over, there),
    type: (part: Partial<PolicyText>) =>
      setDraft({ typed: { ...shown, ...part }, over: draft?.over ?? there, isSaved: false }),
    onSaved: () => setDraft(now => now && { ...now, isSaved: true }),
    drop: () => setDraft(null),
  };
}
