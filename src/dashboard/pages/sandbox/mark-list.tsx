import { formatClock } from '../../format.ts';
import { Badge } from '../../parts/bits.tsx';
import type { Mark } from '../../parts/plot.tsx';

/** Marks of plots in words, for what no line of a plot can say. */
export function MarkList({ marks }: { marks: Mark[] }) {
  return (
    <ul className="marks" aria-label="Marks">
      {marks.map(({ at, text, tone }) => (
        <li key={`${at} ${text}`}>
          <time className="muted num">{formatClock(new Date(at * 1000))}</time> <Badge tone={tone}>{text}</Badge>
        </li>
      ))}
    </ul>
  );
}
