import { useEffect, useRef, useState } from 'react';
import type { ShownRow } from './hold-places.ts';
import { holdPlaces } from './hold-places.ts';

/** Rows stay in their places for so long after the pointer last moved above them, ms. */
const stillMs = 1_500;

type Hold = { onPointerMove: () => void; onPointerDown: () => void };

/**
 * Rows that change while somebody points at them: nothing moves while the pointer does, or a button of it is down, so
 * that a click meets what it was aimed at. `hold` belongs on the element around the rows.
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
  useEffect(() => () => clearTimeout(timer.current), []);
  const { rows, waiting } = holdPlaces(held ? places.current : latest, latest, keyOf);
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
