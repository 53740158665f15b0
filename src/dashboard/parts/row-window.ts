import { useLayoutEffect, useState } from 'react';
import type { RefObject } from 'react';

/** Rows beside those in sight, so that scrolling finds them there. */
const beside = 10;
/** The window of rows moves by so many: few enough to be drawn within a frame. */
const step = 5;
/** Shorter lists are shown whole. */
const wholeMax = 40;

/** The rows to show of `count`: those from `first` up to, not including, `end`. */
type RowWindow = { first: number; end: number };

/**
 * The rows of `count` that are in sight, where the first begins `topPx` below the upper edge of the window, and some
 * beside.
 */
export function rowsInSight(count: number, rowPx: number, topPx: number, heightPx: number): RowWindow {
  if (count <= wholeMax) return { first: 0, end: count };
  // Whole steps: a window that moves with every pixel would be drawn as often.
  const at = (px: number, round: (steps: number) => number) => round(px / rowPx / step) * step;
  const end = Math.min(count, Math.max(0, at(heightPx - topPx, Math.ceil)) + beside);
  return { first: Math.max(0, Math.min(at(-topPx, Math.floor) - beside, end)), end };
}

/** The rows of a long list to show now: `body` holds rows of `rowPx` each, and the page scrolls. */
export function useRowWindow(body: RefObject<HTMLElement | null>, count: number, rowPx: number): RowWindow {
  const [shown, setShown] = useState(() => rowsInSight(count, rowPx, 0, 0));
  useLayoutEffect(() => {
    const look = () => {
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const next = rowsInSight(count, rowPx, top, window.innerHeight);
      setShown(before => (before.first === next.first && before.end === next.end ? before : next));
    };
    look();
    window.addEventListener('scroll', look, { passive: true });
    window.addEventListener('resize', look);
    return () => {
      window.removeEventListener('scroll', look);
      window.removeEventListener('resize', look);
    };
  }, [body, count, rowPx]);
  return { first: Math.min(shown.first, count), end: Math.min(shown.end, count) };
}
