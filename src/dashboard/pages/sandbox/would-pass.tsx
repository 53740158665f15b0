import { useState } from 'react';
import type { NetworkVerdict } from '../../../protocol/api/network.ts';
import { useChange } from '../../api/hooks.ts';
import { Badge } from '../../parts/bits.tsx';
import type { Tone } from '../../parts/bits.tsx';
import { formText } from '../../parts/form-text.ts';

const words: Record<NetworkVerdict['verdict'], { tone: Tone; text: string }> = {
  passes: { tone: 'ok', text: 'would pass' },
  denied: { tone: 'danger', text: 'would be refused' },
  depends: { tone: 'warn', text: 'depends' },
};

/** Asks the platform whether a policy, saved or not, would let a destination pass. */
export function WouldPass({ policy }: { policy: object }) {
  const [told, setTold] = useState<{ host: string; verdict: NetworkVerdict } | null>(null);
  const ask = useChange<NetworkVerdict>(null, []);
  return (
    <form
      className="body stack"
      style={{ gap: 10 }}
      onSubmit={event => {
        event.preventDefault();
        const host = formText(event.currentTarget, 'host') ?? '';
        ask.mutate({
          method: 'POST',
          path: '/network/verdict',
          body: { ...policy, host },
          then: verdict => setTold({ host, verdict }),
        });
      }}
    >
      <label className="field">
        <span>Would this pass? An address or the name of a host</span>
        <span className="row" style={{ flexWrap: 'nowrap' }}>
          <input name="host" placeholder="registry.npmjs.org" maxLength={253} required />
          <button className="button" disabled={ask.isPending}>
            Ask
          </button>
        </span>
      </label>
      {told && (
        <p role="status" className="row">
          <span className="mono cut">{told.host}</span>
          <Badge tone={words[told.verdict.verdict].tone}>{words[told.verdict.verdict].text}</Badge>
          <span className="muted">by {told.verdict.rule}</span>
        </p>
      )}
    </form>
  );
}
