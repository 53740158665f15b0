import { useState } from 'react';
import type { SandboxTraffic } from '../../../protocol/api/metrics.ts';
import type { SandboxDetail } from '../../../protocol/api/sandbox.ts';
import { useChange, useRead } from '../../api/hooks.ts';
import { formatBytes, formatCount } from '../../format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { Card } from '../../parts/page.tsx';
import { Empty } from '../../parts/bits.tsx';
import { parseLines } from '../sandboxes/create/code.ts';
import { LastDenials } from './last-denials.tsx';
import { WouldPass } from './would-pass.tsx';
import { useSandbox } from './sandbox.tsx';
import { useForbidden } from '../../parts/role-button.tsx';

const everyMs = 3_000;

/** What may leave a sandbox, and what has. */
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

function Policy({ of: { sandboxID, state, network, allowInternetAccess } }: { of: SandboxDetail }) {
  const [internet, setInternet] = useState(allowInternetAccess !== false);
  const [allow, setAllow] = useState((network?.allowOut ?? []).join('\n'));
  const [deny, setDeny] = useState((network?.denyOut ?? []).join('\n'));
  const save = useChange('The policy holds from now on', ['/sandboxes', '/events']);
  const forbidden = useForbidden('developer');
  const why = forbidden ?? (state === 'running' ? undefined : `Not while it is ${state}`);
  // Replaced as a whole: what this form does not show is sent as it is.
  const body = {
    allow_internet_access: internet,
    allowOut: parseLines(allow),
    denyOut: parseLines(deny),
    ...(network?.rules && { rules: network.rules }),
  };
  const hasProxy = network?.egressProxy !== undefined;
  return (
    <Card title="Policy">
      <form
        className="body stack"
        style={{ gap: 12 }}
        onSubmit={event => {
          event.preventDefault();
          save.mutate({ method: 'PUT', path: `/sandboxes/${sandboxID}/network`, body });
        }}
      >
        <label className="check">
          <input type="checkbox" checked={internet} onChange={event => setInternet(event.target.checked)} />
          May reach the internet
        </label>
        <label className="field">
          <span>Allowed: addresses, blocks and domains, one on a line</span>
          <textarea rows={4} value={allow} placeholder="*.npmjs.org" onChange={event => setAllow(event.target.value)} />
        </label>
        <label className="field">
          <span>Denied: addresses and blocks, one on a line</span>
          <textarea rows={4} value={deny} placeholder="0.0.0.0/0" onChange={event => setDeny(event.target.value)} />
        </label>
        {network?.rules && (
          <p className="muted">Header rules for {Object.keys(network.rules).join(', ')} stay as they are.</p>
        )}
        {hasProxy && (
          <p className="note warn">
            This sandbox sends through a proxy whose password is never told: change its policy where it is known.
          </p>
        )}
        <div className="row">
          <button className="button primary" title={why} disabled={why !== undefined || hasProxy || save.isPending}>
            Save
          </button>
          {why !== undefined && <span className="muted">{why}</span>}
        </div>
      </form>
      <WouldPass policy={{ allow_internet_access: internet, allowOut: parseLines(allow), denyOut: parseLines(deny) }} />
    </Card>
  );
}
