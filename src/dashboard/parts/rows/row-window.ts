import { useDeferredValue, useLayoutEffect, useState } from 'react';
import type { RefObject } from 'react';

/** Rows beside those in sight, so that scrolling finds them there. */
const besideRows = 10;
/** The window of rows moves by so many: few enough to be drawn within a frame. */
const step = 5;
/** Shorter lists are shown whole. */
const wholeMax = 40;

/** The rows to show: those from `first` up to, not including, `end`. */
type RowWindow = { first: number; end: number };

/** The rows that are in sight, however many there are: the first begins `topPx` below the window's upper edge. */
export function rowsInSight(rowPx: number, topPx: number, heightPx: number): RowWindow {
  // Whole steps: a window that moves with every pixel would be drawn as often.
  const at = (px: number, round: (steps: number) => number) => Math.max(0, round(px / rowPx / step) * step);
  return { first: at(-topPx, Math.floor), end: at(heightPx - topPx, Math.ceil) };
}

/** The rows of `count` to show where these are in sight, with so many beside. */
export function rowsToShow(count: number, { first, end }: RowWindow, beside = besideRows): RowWindow {
  if (count <= wholeMax && beside > 0) return { first: 0, end: count };
  const last = Math.min(count, end + beside);
  return { first: Math.max(0, Math.min(first - beside, last)), end: last };
}

/**
 * The rows of a long list to show now: `body` holds rows of `rowPx` each, and the page scrolls. Rows that come at once
 * for others, which `areLeaving`, are drawn where they are in sight, and those beside them when there is time.
 */
export function useRowWindow(
  body: RefObject<HTMLElement | null>,
  count: number,
  rowPx: number,
  areLeaving: boolean,
): RowWindow {
  const [inSight, setInSight] = useState<RowWindow>({ first: 0, end: 0 });
  const isRoomy = useDeferredValue(!areLeaving);
  // Not with each row that comes: it costs a layout of the page, and where there are fewer rows the page scrolls.
  useLayoutEffect(() => {
    const look = () => {
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const next = rowsInSight(rowPx, top, window.innerHeight);
      setInSight(before => (before.first === next.first && before.end === next.end ? before : next));
    };
    look();
    window.addEventListener('scroll', look, { passive: true });
    window.addEventListener('resize', look);
    return () => {
      window.removeEventListener('scroll', look);
      window.removeEventListener('resize', look);
    };
  }, [body, rowPx]);
  return rowsToShow(count, inSight, isRoomy ? besideRows : 0);
}
