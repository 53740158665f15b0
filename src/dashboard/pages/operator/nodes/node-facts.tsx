import type { NodeDetail } from '../../../../protocol/api/node.ts';
import { formatBytes, formatCount } from '../../../format.ts';
import { Meter } from '../../../parts/bits.tsx';

/** A node's properties, and how much of it is used or promised. */
export function NodeFacts({ of }: { of: NodeDetail }) {
  const { version, commit, machineInfo, metrics, keepsMemory, pool, labels } = of;
  return (
    <dl className="facts body">
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
      <dt>Creates</dt>
      <dd>
        {formatCount(of.createSuccesses)}, {formatCount(of.createFails)} failed, since the platform started
      </dd>
      {keepsMemory && (
        <>
          <dt>Pauses</dt>
          <dd>{keepsMemory.kept ? 'with memory' : `with files alone: ${keepsMemory.reason ?? 'no reason given'}`}</dd>
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
  );
}

/** How often a create found a waiting one. */
function poolWords({ hits, misses }: NonNullable<NodeDetail['pool']>): string {
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
