import type { Finding } from './inside/feature.ts';

/** What was seen on one host. */
export type HostReport = { title: string; kernel: string; controlGroups: string; node: string; findings: Finding[] };

const marks = { works: 'works', refused: 'refused', fails: '**fails**' } as const;
const detailCharsMax = 160;

/** One table for all hosts, as text for a terminal and for docs/hosts.md: a row for each feature, a column for each host. */
export function tableOf(reports: HostReport[]): string {
  const features = [...new Set(reports.flatMap(({ findings }) => findings.map(({ feature }) => feature)))];
  const lines = [
    row(['', ...reports.map(({ title }) => title)]),
    row(['---', ...reports.map(() => '---')]),
    row(['kernel', ...reports.map(({ kernel }) => kernel)]),
    row(['control groups', ...reports.map(({ controlGroups }) => controlGroups)]),
    row(['Node.js of the distribution', ...reports.map(({ node }) => node)]),
    ...features.map(feature => row([feature, ...reports.map(({ findings }) => cell(findings.find(found => found.feature === feature)))])),
  ];
  return `${lines.join('\n')}\n`;
}

function cell(found: Finding | undefined): string {
  if (!found) return '–';
  const detail = found.detail.replace(/\s+/g, ' ').trim().slice(0, detailCharsMax);
  return detail === '' ? marks[found.verdict] : `${marks[found.verdict]}: ${detail}`;
}

const row = (cells: string[]) => `| ${cells.map(text => text.replaceAll('|', '\\|')).join(' | ')} |`;
