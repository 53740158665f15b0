import 'uplot/dist/uPlot.min.css';
import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import { formatMoment, zoneOption } from '../format.ts';
import type { Zone } from '../format.ts';
import { useScheme } from './scheme.ts';
import { useZone } from './zone.tsx';

/** One line of a plot; `limit` makes it dashed. */
type Series = { name: string; values: (number | null)[]; format: (value: number) => string; limit?: boolean };

/** A moment that a plot shows as a vertical line; `at` in seconds. */
export type Mark = { at: number; text: string; tone: 'ok' | 'warn' | 'danger' };

type PlotProps = {
  title: string;
  times: number[];
  series: Series[];
  max?: number | undefined;
  /** The values are bytes: the steps are powers of two. */
  binary?: boolean;
  marks?: Mark[];
  /** The user has drawn over a part of the plot, in seconds, to see it closer. */
  onBrush?: (from: number, to: number) => void;
};

const height = 190;
/** A time of day with its seconds takes this much, plus some space. */
const tickPixels = 84;
/** Anything narrower was a click. */
const brushPixelsMin = 4;
/** What is shown around a single moment, seconds: uPlot would show years. */
const aroundSeconds = 300;
const powersOfTwo = Array.from({ length: 48 }, (_, power) => 2 ** power);
const [minuteSeconds, daySeconds] = [60, 24 * 3600];

function aligned(times: number[], series: Series[]): uPlot.AlignedData {
  const [only] = times;
  if (times.length !== 1 || only === undefined) return [times, ...series.map(({ values }) => values)];
  const beside = [only - aroundSeconds, only, only + aroundSeconds];
  return [beside, ...series.map(({ values }) => [null, values[0] ?? null, null])];
}

/** A time on the axis, as precise as the axis's `spanSeconds` requires. */
function formatTick(seconds: number, spanSeconds: number, zone: Zone): string {
  const moment = new Date(seconds * 1000);
  if (spanSeconds > 2 * daySeconds)
    return moment.toLocaleDateString(undefined, { day: 'numeric', month: 'short', ...zoneOption(zone) });
  return moment.toLocaleTimeString(undefined, {
    hour: '2-digit',
    minute: '2-digit',
    ...(spanSeconds < 5 * minuteSeconds && { second: '2-digit' }),
    hourCycle: 'h23',
    ...zoneOption(zone),
  });
}

/** Numbers over time; the cursor shows their values. `times` are seconds. */
export function Plot({ title, times, series, max, binary, marks = [], onBrush }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const scheme = useScheme();
  const zone = useZone();
  const shape = JSON.stringify([series.map(({ name }) => name), max]);
  const data = aligned(times, series);
  const chart = useRef<uPlot | null>(null);
  const shownMarks = useRef(marks);
  shownMarks.current = marks;
  const brush = useRef(onBrush);
  brush.current = onBrush;
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const style = getComputedStyle(element);
    const colour = (name: string) => resolveColour(style.getPropertyValue(name), element);
    const colours = ['--accent', '--warn', '--muted'].map(colour);
    const grid = { stroke: colour('--line'), width: 1 };
    const axis = { stroke: colour('--muted'), grid, ticks: grid, font: '12px Inter Variable' };
    chart.current = new uPlot(
      {
        width: element.clientWidth,
        height,
        series: [
          { label: 'Time', value: (_, at) => (at === null ? '–' : formatMoment(new Date(at * 1000), zone)) },
          ...series.map(({ name, format, limit }, index) => ({
            label: name,
            stroke: colours[index] ?? '',
            width: 1.5,
            ...(limit && { dash: [5, 5] }),
            value: (_: uPlot, value: number | null) => (value === null ? '–' : format(value)),
          })),
        ],
        axes: [
          {
            ...axis,
            space: tickPixels,
            values: (_, ticks) =>
              ticks.map(tick => formatTick(tick, (ticks.at(-1) ?? tick) - (ticks[0] ?? tick), zone)),
          },
          {
            ...axis,
            size: 76,
            values: (_, ticks) => ticks.map(tick => series[0]?.format(tick) ?? ''),
            ...(binary && { incrs: powersOfTwo }),
          },
        ],
        scales: { y: { range: (_, _low, high) => [0, max ?? Math.max(high * 1.1, 1)] } },
        cursor: { sync: { key: 'metrics' }, drag: { x: true, y: false, setScale: false } },
        hooks: {
          setSelect: [plot => readBrush(plot, brush.current)],
          draw: [plot => drawMarks(plot, shownMarks.current, tone => colour(`--${tone}`))],
        },
      },
      data,
      element,
    );
    const observer = new ResizeObserver(() => chart.current?.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      chart.current?.destroy();
      chart.current = null;
    };
    // The data follows by itself; only another shape or other colours need a new chart.
  }, [shape, scheme, zone]);
  useEffect(() => chart.current?.setData(data));
  return <div className="plot" ref={place} role="img" aria-label={title} />;
}

/** Reads what was drawn over, then clears it. A click draws over nothing. */
function readBrush(plot: uPlot, onBrush: PlotProps['onBrush']): void {
  const { left, width, top, height } = plot.select;
  if (width < brushPixelsMin) return;
  plot.setSelect({ left: 0, width: 0, top, height }, false);
  onBrush?.(plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x'));
}

/** Draws a vertical line at each mark within the plot. */
function drawMarks(plot: uPlot, marks: readonly Mark[], colourOf: (tone: Mark['tone']) => string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const { at, tone } of marks) {
    const x = Math.round(plot.valToPos(at, 'x', true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.strokeStyle = colourOf(tone);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

/** A colour that a canvas understands, from one that may depend on the theme. */
function resolveColour(value: string, element: HTMLElement): string {
  const probe = document.createElement('span');
  probe.style.color = value;
  element.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}
