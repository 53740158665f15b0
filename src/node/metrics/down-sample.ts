import type { SampleRange, SandboxSample } from '../../protocol/node-usage.ts';

/** The samples of a range, oldest first; if there are more than `pointsMax`, spans of equal length are merged. */
export function downSample(
  samples: readonly SandboxSample[],
  { startSeconds, endSeconds, pointsMax }: SampleRange,
): SandboxSample[] {
  // In order, unless the clock was changed.
  const asked = samples
    .filter(({ atSeconds }) => atSeconds >= startSeconds && atSeconds <= endSeconds)
    .sort((a, b) => a.atSeconds - b.atSeconds);
  const [first] = asked;
  const last = asked.at(-1);
  if (!first || !last || asked.length <= pointsMax) return asked;
  const spanSeconds = Math.ceil((last.atSeconds - first.atSeconds + 1) / pointsMax);
  const spans: SandboxSample[][] = [];
  let spanEnd = first.atSeconds;
  for (const sample of asked) {
    if (sample.atSeconds >= spanEnd) {
      spanEnd = sample.atSeconds - ((sample.atSeconds - first.atSeconds) % spanSeconds) + spanSeconds;
      spans.push([]);
    }
    spans.at(-1)?.push(sample);
  }
  return spans.map(together);
}

/**
 * Merges several samples: the time of the first, the mean of the CPU, the sample with the most memory, the highest use
 * of the disk.
 */
function together(span: readonly SandboxSample[]): SandboxSample {
  const first = span[0] as SandboxSample;
  const fullest = span.reduce((most, sample) => (sample.memUsed > most.memUsed ? sample : most), first);
  const largest = span.reduce((most, sample) => (sample.diskUsed > most.diskUsed ? sample : most), first);
  const cpuUsedPct = span.reduce((sum, sample) => sum + sample.cpuUsedPct, 0) / span.length;
  return {
    ...fullest,
    atSeconds: first.atSeconds,
    cpuUsedPct: Math.round(cpuUsedPct * 100) / 100,
    diskUsed: largest.diskUsed,
    diskTotal: largest.diskTotal,
  };
}
