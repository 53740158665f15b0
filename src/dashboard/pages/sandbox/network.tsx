import type { SandboxTraffic } from '../../../protocol/api/metrics.ts';
import type { SandboxDetail } from '../../../protocol/api/sandbox.ts';
import { useChange, useRead } from '../../api/hooks.ts';
import { formatBytes, formatCount } from '../../format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { Card } from '../../parts/page.tsx';
import { Empty } from '../../parts/bits.tsx';
import { parseLines } from '../sandboxes/create/code.ts';
import { LastDenials } from './last-denials.tsx';
import { usePolicyDraft } from './policy-draft.ts';
import { WouldPass } from './would-pass.tsx';
import { useSandbox } from './sandbox.tsx';
import { useForbidden } from '../../parts/role-button.tsx';

const everyMs = 3_000;

/** What may leave a sandbox, and what has left it. */
export function Network() {
  const { sandboxId, detail } = useSandbox();
  const traffic = useRead<SandboxTraffic>(`/sandboxes/${encodeURIComponent(sandboxId)}/traffic`, {
    every: everyMs,
    enabled: detail?.state === 'running',
  });
  if (!detail)
    return (
      <div className="table-wrap">
        <Empty title="It has ended" />
      </div>
    );
  return (
    <div className="stack">
      {detail.state === 'running' && (
        <Loaded of={traffic}>
          {({ bytesOut, bytesIn, denied }) => (
            <div className="stats">
              <div>
                <strong>{formatBytes(bytesOut)}</strong> sent
              </div>
              <div>
                <strong>{formatBytes(bytesIn)}</strong> received
              </div>
              <div>
                <strong>{formatCount(denied)}</strong> refused by the policy
              </div>
            </div>
          )}
        </Loaded>
      )}
      <div className="columns">
        <Policy of={detail} />
        <Card title="Who wins">
          <div className="body stack" style={{ gap: 8 }}>
            <p>An address or domain that is allowed may be reached, whatever is denied.</p>
            <p>Then what is denied may not. Everything else may, unless the internet is switched off.</p>
            <p className="muted">
              Private addresses, the machine itself and other sandboxes are out of reach whatever the policy says.
            </p>
          </div>
        </Card>
      </div>
      <LastDenials sandboxId={sandboxId} />
    </div>
  );
}

function Policy({ of: detail }: { of: SandboxDetail }) {
  const { sandboxID, state, network } = detail;
  const save = useChange('The policy holds from now on', ['/sandboxes', '/events']);
  const { shown, isOvertaken, type, onSaved, drop } = usePolicyDraft(detail, save.isPending);
  const forbidden = useForbidden('developer');
  const why = forbidden ?? (state === 'running' ? undefined : `Not while it is ${state}`);
  // The policy is replaced as a whole: parts that this form does not show are sent unchanged.
  const policy = {
    allow_internet_access: shown.internet,
    allowOut: parseLines(shown.allow),
    denyOut: parseLines(shown.deny),
  };
  const body = { ...policy, ...(network?.rules && { rules: network.rules }) };
  const hasProxy = network?.egressProxy !== undefined;
  return (
    <Card title="Policy">
      <form
        className="body stack"
        style={{ gap: 12 }}
        onSubmit={event => {
          event.preventDefault();
          save.mutate({ method: 'PUT', path: `/sandboxes/${sandboxID}/network`, body, then: onSaved });
        }}
      >
        <label className="check">
          <input
            type="checkbox"
            checked={shown.internet}
            disabled={save.isPending}
            onChange={event => type({ internet: event.target.checked })}
          />
          May reach the internet
        </label>
        <Lines
          label="Allowed: addresses, blocks and domains, one on a line"
          value={shown.allow}
          placeholder="*.npmjs.org"
          readOnly={save.isPending}
          onType={allow => type({ allow })}
        />
        <Lines
          label="Denied: addresses and blocks, one on a line"
          value={shown.deny}
          placeholder="0.0.0.0/0"
          readOnly={save.isPending}
          onType={deny => type({ deny })}
        />
        {network?.rules && (
          <p className="muted">Header rules for {Object.keys(network.rules).join(', ')} stay as they are.</p>
        )}
        {hasProxy && (
          <p className="note warn">
            This sandbox sends through a proxy whose password is never told: change its policy where it is known.
          </p>
        )}
        {isOvertaken && <Overtaken onDrop={drop} />}
        <div className="row">
          <button className="button primary" title={why} disabled={why !== undefined || hasProxy || save.isPending}>
            Save
          </button>
          {why !== undefined && <span className="muted">{why}</span>}
        </div>
      </form>
      <WouldPass policy={policy} />
    </Card>
  );
}

type LinesProps = {
  label: string;
  value: string;
  placeholder: string;
  readOnly: boolean;
  onType: (text: string) => void;
};

const Lines = ({ label, onType, ...rest }: LinesProps) => (
  <label className="field">
    <span>{label}</span>
    <textarea rows={4} {...rest} onChange={event => onType(event.target.value)} />
  </label>
);

/** Says that saving would not be based on the current policy. */
const Overtaken = ({ onDrop }: { onDrop: () => void }) => (
  <div className="note warn" role="status">
    <span className="grow">The policy was changed since you began. What you save takes the place of that, too.</span>
    <button type="button" className="button tiny" onClick={onDrop}>
      Show it as it is
    </button>
  </div>
);
