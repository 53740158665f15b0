import { useEffect, useMemo, useRef, useState } from 'react';
import type { ShownRow } from './hold-places.ts';
import { holdPlaces } from './hold-places.ts';

/** Rows stay in place for this long after the pointer last moved above them or the page was scrolled, ms. */
const stillMs = 1_500;

type Hold = { onPointerMove: () => void; onPointerDown: () => void };

/**
 * Rows that change while the user points at them or scrolls. Nothing moves while the pointer or the page does, or a
 * pointer button is down, so that a click hits its target and an eye finds again what it followed. `hold` belongs on
 * the element around the rows.
 */
export function useHeldRows<T>(
  latest: readonly T[],
  keyOf: (row: T) => string,
): { rows: ShownRow<T>[]; waiting: number; hold: Hold } {
  const [held, setHeld] = useState(false);
  const places = useRef(latest);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const release = () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setHeld(false), stillMs);
  };
  useEffect(() => {
    const onScroll = () => {
      setHeld(true);
      release();
    };
    window.addEventListener('scroll', onScroll, { passive: true });
    return () => {
      window.removeEventListener('scroll', onScroll);
      clearTimeout(timer.current);
    };
  }, []);
  // Drawn again at each step of scrolling, with the same rows: there may be thousands.
  const { rows, waiting } = useMemo(
    () => holdPlaces(held ? places.current : latest, latest, keyOf),
    [held, latest, keyOf],
  );
  places.current = rows.map(({ row }) => row);
  const hold = {
    onPointerMove() {
      setHeld(true);
      release();
    },
    onPointerDown() {
      setHeld(true);
      clearTimeout(timer.current);
      const isDone = new AbortController();
      const up = () => {
        isDone.abort();
        release();
      };
      for (const name of ['pointerup', 'pointercancel'])
        window.addEventListener(name, up, { signal: isDone.signal, capture: true });
    },
  };
  return { rows, waiting, hold };
}
