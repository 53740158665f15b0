import { useParams } from '@tanstack/react-router';
import type { NodeDetail } from '../../../../protocol/api/node.ts';
import { useRead } from '../../../api/hooks.ts';
import { Ago, Badge, Copy } from '../../../parts/bits.tsx';
import { Loaded } from '../../../parts/loaded.tsx';
import { Card, Page } from '../../../parts/page.tsx';
import { NodeActions } from './node-actions.tsx';
import { NodeContent } from './node-content.tsx';
import { NodeFacts } from './node-facts.tsx';
import { NodePlots } from './node-plots.tsx';
import { statusTone } from './status-tone.ts';

const everyMs = 5_000;

/** A machine that hosts sandboxes: what it is, what it has, what it used. */
export function NodePage() {
  const { nodeId = '' } = useParams({ strict: false });
  const path = `/nodes/${encodeURIComponent(nodeId)}`;
  const node = useRead<NodeDetail>(path, { personal: true, every: everyMs });
  return (
    <Page
      title={`Node ${nodeId.slice(0, 8)}`}
      about={<Copy text={nodeId} />}
      actions={node.data && <NodeActions of={node.data} />}
    >
      <Loaded of={node}>
        {of => (
          <>
            <p className="row">
              <Badge tone={statusTone[of.status]}>{of.status}</Badge>
              <span className="muted">
                since <Ago at={of.statusChangedAt} />
              </span>
            </p>
            <NodeContent id={nodeId} />
            <Card title="Machine">
              <NodeFacts of={of} />
            </Card>
            <Card title="Last day">
              <div className="body">
                <NodePlots id={nodeId} />
              </div>
            </Card>
          </>
        )}
      </Loaded>
    </Page>
  );
}
