import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Node, NodeStatus } from '../../../protocol/api/node.ts';
import { useChange, useRead } from '../../api/hooks.ts';
import { formatBytes, formatCount } from '../../format.ts';
import { Ago, Badge, Copy, Meter, Taken } from '../../parts/bits.tsx';
import type { Tone } from '../../parts/bits.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Card, Page } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';
import { NodePlots } from './node-plots.tsx';
import { DrainDialog } from './drain.tsx';

const everyMs = 5_000;
const tones: Record<NodeStatus, Tone> = {
  ready: 'ok',
  draining: 'warn',
  connecting: 'warn',
  unhealthy: 'danger',
  standby: 'idle',
};

/** The machines that host sandboxes. */
export function Nodes() {
  const nodes = useRead<Node[]>('/nodes', { personal: true, every: everyMs });
  return (
    <Page title="Nodes">
      <Loaded of={nodes}>
        {rows => (
          <>
            <Card title="All">
              <NodeTable rows={rows} />
            </Card>
            {rows.map(node => (
              <NodeCard key={node.id} of={node} />
            ))}
          </>
        )}
      </Loaded>
    </Page>
  );
}

/** The nodes in a table, with what of them is taken. */
export function NodeTable({ rows }: { rows: Node[] }) {
  return (
    <Table
      label="Nodes"
      rows={rows}
      keyOf={({ id }) => id}
      empty="There is no node"
      columns={[
        { name: 'Status', of: ({ status }) => <Badge tone={tones[status]}>{status}</Badge> },
        {
          name: 'Node',
          of: ({ id }) => (
            <Copy text={id}>
              <span className="mono">{id.slice(0, 8)}</span>
            </Copy>
          ),
        },
        { name: 'Since', of: ({ statusChangedAt }) => <Ago at={statusChangedAt} /> },
        { name: 'Sandboxes', end: true, of: ({ sandboxCount }) => formatCount(sandboxCount) },
        {
          name: 'CPU',
          of: ({ metrics }) => <Taken share={metrics.cpuPercent / 100} text={`${metrics.cpuPercent} %`} />,
        },
        {
          name: 'Memory',
          of: ({ metrics }) => (
            <Taken
              share={metrics.memoryUsedBytes / Math.max(1, metrics.memoryTotalBytes)}
              text={formatBytes(metrics.memoryUsedBytes)}
            />
          ),
        },
        { name: ' ', end: true, of: node => <StatusButton of={node} /> },
      ]}
    />
  );
}

function StatusButton({ of: { id, status } }: { of: Node }) {
  const [asking, setAsking] = useState(false);
  const change = useChange('Changed', ['/nodes'], true);
  const path = `/nodes/${encodeURIComponent(id)}`;
  if (status !== 'ready')
    return (
      <button
        type="button"
        className="button tiny"
        disabled={status !== 'draining' && status !== 'standby'}
        onClick={() => change.mutate({ method: 'POST', path, body: { status: 'ready' } })}
      >
        Take new ones
      </button>
    );
  return (
    <>
      <button type="button" className="button tiny" onClick={() => setAsking(true)}>
        Drain
      </button>
      {asking && <DrainDialog id={id} onClose={() => setAsking(false)} />}
    </>
  );
}

function NodeCard({ of }: { of: Node }) {
  const { id, version, commit, machineInfo, metrics, keepsMemory, pool, labels } = of;
  return (
    <Card title={id}>
      <div className="body stack">
        <dl className="facts">
          <dt>Machine</dt>
          <dd>
            {machineInfo.cpuModelName}, {machineInfo.cpuArchitecture}
          </dd>
          <dt>Version</dt>
          <dd className="mono">
            {version} {commit.slice(0, 10)}
          </dd>
          <dt>Promised</dt>
          <dd>
            {metrics.allocatedCPU} of {metrics.cpuCount} CPUs, {formatBytes(metrics.allocatedMemoryBytes)} of{' '}
            {formatBytes(metrics.memoryTotalBytes)} memory
          </dd>
          <dt>Sandboxes</dt>
          <dd>
            {formatCount(of.sandboxCount)},{' '}
            <Link to="/sandboxes" search={{ node: id }}>
              those of this team
            </Link>
          </dd>
          {keepsMemory && (
            <>
              <dt>Pauses</dt>
              <dd>
                {keepsMemory.kept ? 'with memory' : `with files alone: ${keepsMemory.reason ?? 'no reason given'}`}
              </dd>
            </>
          )}
          {pool && (
            <>
              <dt>Pool</dt>
              <dd>
                {formatCount(pool.ready)} of {formatCount(pool.size)} started sandboxes wait; {poolWords(pool)}
              </dd>
            </>
          )}
          {labels && Object.keys(labels).length > 0 && (
            <>
              <dt>Labels</dt>
              <dd className="mono">
                {Object.entries(labels)
                  .map(([name, value]) => `${name}=${value}`)
                  .join(', ')}
              </dd>
            </>
          )}
          {metrics.disks.map(({ mountPoint, device, usedBytes, totalBytes }) => (
            <Disk key={mountPoint} name={mountPoint} device={device} used={usedBytes} total={totalBytes} />
          ))}
        </dl>
        <NodePlots id={id} />
      </div>
    </Card>
  );
}

/** How often a create found one waiting. */
function poolWords({ hits, misses }: NonNullable<Node['pool']>): string {
  const asked = hits + misses;
  if (asked === 0) return 'none was asked for yet';
  return `${formatCount(hits)} of ${formatCount(asked)} creates found one (${Math.round((hits / asked) * 100)} %)`;
}

function Disk({ name, device, used, total }: { name: string; device: string; used: number; total: number }) {
  const text = `${formatBytes(used)} of ${formatBytes(total)}`;
  return (
    <>
      <dt>
        Disk <span className="mono">{name}</span>
      </dt>
      <dd>
        {text} <span className="muted mono">{device}</span>
        <Meter wide share={used / Math.max(1, total)} label={text} />
      </dd>
    </>
  );
}
