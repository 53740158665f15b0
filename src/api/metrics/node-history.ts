import type { DiskUsage } from '../../protocol/node-usage.ts';

/** Use of a node at one moment. */
type NodeSample = {
  /** Epoch seconds. */
  atSeconds: number;
  /** 0 to 100, over all CPUs. */
  cpuPercent: number;
  memoryUsedBytes: number;
  memoryTotalBytes: number;
  disks: Pick<DiskUsage, 'mountPoint' | 'usedBytes' | 'totalBytes'>[];
};

/** A disk of a node now, and when it will be full if it goes on as before; null where it does not grow. */
type DiskForecast = NodeSample['disks'][number] & { nodeId: string; fullAtSeconds: number | null };

/** Samples that are kept of a node: those of a day, one a minute. */
export const nodeSamplesMax = 24 * 60;
/** Nodes to remember; beyond that, the one last heard of longest ago is forgotten. */
const nodesMax = 1_000;
/** A forecast needs samples over at least this time, s: a shorter trend may be chance. */
const forecastSecondsMin = 10 * 60;
/** Forecasts that lie further ahead are left out, s. */
const forecastSecondsMax = 365 * 24 * 3_600;

/** The nodes' use during the last day, as this process saw it; it starts empty with the process. */
export class NodeHistory {
  readonly #samples = new Map<string, NodeSample[]>();

  add(nodeId: string, sample: NodeSample): void {
    const samples = this.#samples.get(nodeId) ?? [];
    samples.push(sample);
    if (samples.length > nodeSamplesMax) samples.shift();
    // Moves it to the end: the first one is the one heard of longest ago.
    this.#samples.delete(nodeId);
    this.#samples.set(nodeId, samples);
    const [oldest] = this.#samples.keys();
    if (this.#samples.size > nodesMax && oldest !== undefined) this.#samples.delete(oldest);
  }

  of(nodeId: string): readonly NodeSample[] {
    return this.#samples.get(nodeId) ?? [];
  }

  /** The disks of a node, and when each will be full. */
  forecast(nodeId: string): DiskForecast[] {
    const samples = this.of(nodeId);
    return (samples.at(-1)?.disks ?? []).map(disk => {
      const used = samples.flatMap(({ atSeconds, disks }) => {
        const then = disks.find(({ mountPoint }) => mountPoint === disk.mountPoint);
        return then ? [{ x: atSeconds, y: then.usedBytes }] : [];
      });
      return { ...disk, nodeId, fullAtSeconds: fullAt(used, disk.totalBytes) };
    });
  }
}

type Point = { x: number; y: number };

/** When the line through the points, by least squares, reaches `total`; null where it does not within a year. */
export function fullAt(points: readonly Point[], total: number): number | null {
  const [first, last] = [points[0], points.at(-1)];
  if (!first || !last || last.x - first.x < forecastSecondsMin) return null;
  const mean = (of: (point: Point) => number) => points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const [x, y] = [mean(point => point.x), mean(point => point.y)];
  const spread = mean(point => (point.x - x) ** 2);
  const bytesPerSecond = mean(point => (point.x - x) * (point.y - y)) / spread;
  if (bytesPerSecond <= 0) return null;
  const seconds = Math.max(0, total - last.y) / bytesPerSecond;
  return seconds > forecastSecondsMax ? null : Math.round(last.x + seconds);
}
