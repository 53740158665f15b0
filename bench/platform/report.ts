import { cpus, release, totalmem } from 'node:os';
import type { Line } from '../measure/plot.ts';
import type { Summary } from '../measure/statistics.ts';
import type { Alternative } from './alternatives.ts';

/**
 * One measured figure: a series of times, or a count, with its goal. `alternative`: what a user would pick instead for
 * the same.
 */
export type Figure = { name: string; goal: string; alternative?: string; summary?: Summary; value?: string };

/** A series that is drawn into `<file>.svg`. */
export type Plot = { file: string; title: string; xLabel: string; yLabel: string; lines: Line[] };

const ms = (value: number) => (value < 10 ? value.toFixed(2) : value.toFixed(1));

/** The machine on which the numbers were measured. */
export function machineFacts(): string {
  const [cpu] = cpus();
  return `${cpus().length} cores (${cpu?.model ?? 'unknown'}), ${(totalmem() / 1024 ** 3).toFixed(0)} GiB, Linux ${release()}, Bun ${Bun.version}`;
}

/** A row for each figure, with the ratio to the median of its alternative in the same run. */
export function figuresTable(figures: Figure[], alternatives: Alternative[] = []): string {
  const besideOf = ({ summary, alternative }: Figure) => {
    const other = alternatives.find(({ name }) => name === alternative);
    if (!summary || !other || !('summary' in other)) return '';
    return `${(other.summary.median / summary.median).toFixed(1)} × for \`${other.name}\``;
  };
  const rows = figures.map(figure => {
    const { name, goal, summary, value } = figure;
    return summary
      ? `| ${name} | ${ms(summary.median)} ms | ${ms(summary.p99)} ms | ${ms(summary.min)} ms | ${summary.count} | ${goal} | ${besideOf(figure)} |`
      : `| ${name} | ${value} | | | | ${goal} | |`;
  });
  const head = '| Figure | Median | p99 | Min | Runs | Goal | Takes beside it |';
  return [head, '|---|---|---|---|---|---|---|', ...rows].join('\n');
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
