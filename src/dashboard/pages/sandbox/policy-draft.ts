import { useState } from 'react';
import type { SandboxDetail } from '../../../protocol/api/sandbox.ts';

/** A policy as the form has it: lists with a line for each. */
type PolicyText = { internet: boolean; allow: string; deny: string };

const textOf = ({ network, allowInternetAccess }: SandboxDetail): PolicyText => ({
  internet: allowInternetAccess !== false,
  allow: (network?.allowOut ?? []).join('\n'),
  deny: (network?.denyOut ?? []).join('\n'),
});

const isSame = (a: PolicyText, b: PolicyText) => a.internet === b.internet && a.allow === b.allow && a.deny === b.deny;

/**
 * What the form of a policy shows: the policy that there is, whoever changes it, until something is typed; and whether
 * somebody else has changed it since. `isSaving`: until the sandbox has been read again.
 */
export function usePolicyDraft(detail: SandboxDetail, isSaving: boolean) {
  const there = textOf(detail);
  const [draft, setDraft] = useState<{ typed: PolicyText; over: PolicyText; isSaved: boolean } | null>(null);
  // What was saved is shown until it is there: in between are the values from before.
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
