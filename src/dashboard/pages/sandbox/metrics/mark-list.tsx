import { Badge } from '../../../parts/bits.tsx';
import type { Mark } from '../../../parts/plot.tsx';
import { TimeOfDay } from '../../../parts/zone.tsx';

/** The marks of plots in words, for users whom the lines of a plot tell nothing. */
export function MarkList({ marks }: { marks: Mark[] }) {
  return (
    <ul className="marks" aria-label="Marks">
      {marks.map(({ at, text, tone }) => (
        <li key={`${at} ${text}`}>
          <TimeOfDay className="muted num" at={at * 1000} /> <Badge tone={tone}>{text}</Badge>
        </li>
      ))}
    </ul>
  );
}
