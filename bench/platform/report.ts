import { cpus, release, totalmem } from 'node:os';
import type { Line } from '../measure/plot.ts';
import type { Summary } from '../measure/statistics.ts';
import type { Alternative } from './alternatives.ts';

/** One measured figure: a series of times, or what was counted, beside its goal. */
export type Figure = { name: string; goal: string; summary?: Summary; value?: string };

/** A series that is drawn into `<file>.svg`. */
export type Plot = { file: string; title: string; xLabel: string; yLabel: string; lines: Line[] };

const ms = (value: number) => (value < 10 ? value.toFixed(2) : value.toFixed(1));

/** The machine that the numbers belong to. */
export function machineFacts(): string {
  const [cpu] = cpus();
  return `${cpus().length} cores (${cpu?.model ?? 'unknown'}), ${(totalmem() / 1024 ** 3).toFixed(0)} GiB, Linux ${release()}, Bun ${Bun.version}`;
}

export function figuresTable(figures: Figure[]): string {
  const rows = figures.map(({ name, goal, summary, value }) =>
    summary
      ? `| ${name} | ${ms(summary.median)} ms | ${ms(summary.p99)} ms | ${ms(summary.min)} ms | ${summary.count} | ${goal} |`
      : `| ${name} | ${value} | | | | ${goal} |`,
  );
  return ['| Figure | Median | p99 | Min | Runs | Goal |', '|---|---|---|---|---|---|', ...rows].join('\n');
}

export function alternativesTable(alternatives: Alternative[]): string {
  const floor = alternatives.find(entry => 'summary' in entry);
  const floorMs = floor && 'summary' in floor ? floor.summary.median : Number.NaN;
  const rows = alternatives.map(entry =>
    'summary' in entry
      ? `| ${entry.name} | ${ms(entry.summary.median)} ms | ${ms(entry.summary.p99)} ms | ${(entry.summary.median / floorMs).toFixed(1)}× |`
      : `| ${entry.name} | not measured: ${entry.missing} | | |`,
  );
  return ['| Start, run `true`, end | Median | p99 | Of the floor |', '|---|---|---|---|', ...rows].join('\n');
}
