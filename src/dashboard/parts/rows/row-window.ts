import { useDeferredValue, useLayoutEffect, useState } from 'react';
import type { RefObject } from 'react';

/** Rows beyond those in sight, so that scrolling finds them there. */
const besideRows = 10;
/** The window of rows moves in such steps: small enough to be drawn within a frame. */
const step = 5;
/** Shorter lists are shown whole. */
const wholeMax = 40;

/** The rows to show: those from `first` up to, not including, `end`. */
type RowWindow = { first: number; end: number };

/** The rows that are in sight, however many there are: the first begins `topPx` below the window's upper edge. */
export function rowsInSight(rowPx: number, topPx: number, heightPx: number): RowWindow {
  // Whole steps: a window that moved with every pixel would be drawn as often.
  const at = (px: number, round: (steps: number) => number) => Math.max(0, round(px / rowPx / step) * step);
  return { first: at(-topPx, Math.floor), end: at(heightPx - topPx, Math.ceil) };
}

/** The rows to show out of `count` when these are in sight, with this many extra. */
export function rowsToShow(count: number, { first, end }: RowWindow, beside = besideRows): RowWindow {
  if (count <= wholeMax && beside > 0) return { first: 0, end: count };
  const last = Math.min(count, end + beside);
  return { first: Math.max(0, Math.min(first - beside, last)), end: last };
}

/**
 * The rows of a long list to show now: `body` holds rows of `rowPx` each, and the page scrolls. Rows that replace
 * others all at once (`areLeaving`) are drawn first where they are in sight, and the rest when there is time.
 */
export function useRowWindow(
  body: RefObject<HTMLElement | null>,
  count: number,
  rowPx: number,
  areLeaving: boolean,
): RowWindow {
  const [inSight, setInSight] = useState<RowWindow>({ first: 0, end: 0 });
  const isRoomy = useDeferredValue(!areLeaving);
  // Not with each row that arrives: it costs a layout of the page, and if rows become fewer, the page scrolls.
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
