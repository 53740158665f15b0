import { createContext, use, useState } from 'react';
import type { ReactNode } from 'react';
import { formatClock, formatMoment } from '../format.ts';
import type { Zone } from '../format.ts';

const key = 'atoll.zone';
const remembered = (): Zone => (localStorage.getItem(key) === 'utc' ? 'utc' : 'local');

type Choice = { zone: Zone; choose: (zone: Zone) => void };

const ZoneContext = createContext<Choice>({ zone: 'local', choose: () => {} });

/** The zone in which times are shown, and how to choose another. */
export const useZoneChoice = (): Choice => use(ZoneContext);

/** The zone in which times are shown. */
export const useZone = (): Zone => use(ZoneContext).zone;

/** Makes everything below show times in the zone chosen in this browser. */
export function Zones({ children }: { children: ReactNode }) {
  const [zone, setZone] = useState(remembered);
  const choose = (next: Zone) => {
    localStorage.setItem(key, next);
    setZone(next);
  };
  return <ZoneContext value={{ zone, choose }}>{children}</ZoneContext>;
}

/** A full time as text. `at` in ms, or as the API writes it. */
export const ExactTime = ({ at }: { at: number | string }): ReactNode => formatMoment(new Date(at), useZone());

/** The time of day; hovering shows the full time. */
export function TimeOfDay({ at, className }: { at: number | string; className?: string }) {
  const zone = useZone();
  const moment = new Date(at);
  return (
    <time className={className} dateTime={moment.toISOString()} title={formatMoment(moment, zone)}>
      {formatClock(moment, zone)}
    </time>
  );
}
