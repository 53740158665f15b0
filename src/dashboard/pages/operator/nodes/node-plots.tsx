import type { NodeMetric } from '../../../../protocol/api/overview.ts';
import { useRead } from '../../../api/hooks.ts';
import { formatBytes } from '../../../format.ts';
import { Loaded } from '../../../parts/loaded.tsx';
import { Plot } from '../../../parts/plot.tsx';

const everyMs = 60_000;
const percent = (value: number) => `${Math.round(value)} %`;

/** A node's use in the last day: processor, memory and its fullest disk. */
export function NodePlots({ id }: { id: string }) {
  const metrics = useRead<NodeMetric[]>(`/nodes/${encodeURIComponent(id)}/metrics`, { personal: true, every: everyMs });
  return (
    <Loaded of={metrics}>
      {samples => {
        if (samples.length === 0) return <p className="muted">Nothing was measured yet: that takes a minute.</p>;
        const times = samples.map(({ timestampUnix }) => timestampUnix);
        const last = samples.at(-1);
        const share = (one: { usedBytes: number; totalBytes: number }) => one.usedBytes / Math.max(1, one.totalBytes);
        const [fullest] = last?.disks.toSorted((a, b) => share(b) - share(a)) ?? [];
        const used = ({ disks }: NodeMetric) =>
          disks.find(({ mountPoint }) => mountPoint === fullest?.mountPoint)?.usedBytes ?? null;
        return (
          <div className="plots">
            <Plot
              title="Processor of the node"
              times={times}
              max={100}
              series={[{ name: 'CPU', values: samples.map(one => one.cpuPercent), format: percent }]}
            />
            <Plot
              title="Memory of the node"
              binary
              times={times}
              max={last?.memoryTotalBytes}
              series={[{ name: 'Memory', values: samples.map(one => one.memoryUsedBytes), format: formatBytes }]}
            />
            {fullest && (
              <Plot
                title={`Disk ${fullest.mountPoint} of the node`}
                binary
                times={times}
                max={fullest.totalBytes}
                series={[{ name: `Disk ${fullest.mountPoint}`, values: samples.map(used), format: formatBytes }]}
              />
            )}
          </div>
        );
      }}
    </Loaded>
  );
}
