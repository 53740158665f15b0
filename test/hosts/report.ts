import type { Finding } from './inside/feature.ts';

/**
 * A finding, and the commit of Atoll that it was made with, with a final `+` if files differed from it; old reports may
 * lack it.
 */
type SeenFinding = Finding & { commit?: string };

/** What was seen on one host. */
export type HostReport = {
  title: string;
  kernel: string;
  controlGroups: string;
  node: string;
  findings: SeenFinding[];
};

const marks = { works: 'works', refused: 'refused', fails: '**fails**' } as const;
const verdicts = ['works', 'refused', 'fails'] as const;
const detailCharsMax = 160;

/** One table for all hosts, as text for a terminal and for docs/hosts.md: a row per feature, a column per host. */
export function tableOf(reports: HostReport[]): string {
  const features = [...new Set(reports.flatMap(({ findings }) => findings.map(({ feature }) => feature)))];
  const lines = [
    row(['', ...reports.map(({ title }) => title)]),
    row(['---', ...reports.map(() => '---')]),
    row(['kernel', ...reports.map(({ kernel }) => kernel)]),
    row(['control groups', ...reports.map(({ controlGroups }) => controlGroups)]),
    row(['Node.js of the distribution', ...reports.map(({ node }) => node)]),
    row(['commit of Atoll', ...reports.map(commitsOf)]),
    ...features.map(feature =>
      row([feature, ...reports.map(({ findings }) => cell(findings.find(found => found.feature === feature)))]),
    ),
  ];
  return `${lines.join('\n')}\n`;
}

/** What is known of a host after another look: a newer finding replaces an older one of the same feature. */
export function withNewer(older: SeenFinding[], newer: SeenFinding[]): SeenFinding[] {
  const taken = new Map(newer.map(finding => [finding.feature, finding]));
  const features = new Set([...older, ...newer].map(({ feature }) => feature));
  return [...features].flatMap(
    feature => taken.get(feature) ?? older.find(finding => finding.feature === feature) ?? [],
  );
}

/**
 * The reports in a table, for a machine that has not seen its hosts: these stay until they are seen again. The table
 * does not say with which commit each row was seen.
 */
export function reportsIn(table: string): HostReport[] {
  const [[, ...titles] = [], , ...rows] = table.split('\n').filter(isRow).map(cellsOf);
  return titles.map((title, index) => {
    const texts = new Map(rows.map(([feature = '', ...cells]) => [feature, cells[index] ?? '']));
    return {
      title,
      kernel: texts.get('kernel') ?? '',
      controlGroups: texts.get('control groups') ?? '',
      node: texts.get('Node.js of the distribution') ?? '',
      findings: [...texts].flatMap(([feature, text]) => {
        const [, mark, detail = ''] = /^(works|refused|\*\*fails\*\*)(?:: (.*))?$/.exec(text) ?? [];
        const verdict = verdicts.find(candidate => marks[candidate] === mark);
        return verdict ? [{ feature, verdict, detail }] : [];
      }),
    };
  });
}

/** The newest known facts of each host, and every row that was ever seen. */
export function newestOf(older: HostReport[], newer: HostReport[]): HostReport[] {
  const titles = new Set([...older, ...newer].map(({ title }) => title));
  return [...titles].flatMap(title => {
    const [before, now] = [older, newer].map(reports => reports.find(report => report.title === title));
    if (!before || !now) return before ?? now ?? [];
    return { ...now, findings: withNewer(before.findings, now.findings) };
  });
}

const isRow = (line: string) => line.startsWith('| ') && line.endsWith(' |');
const cellsOf = (line: string) =>
  line
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map(text => text.trim().replaceAll('\\|', '|'));

/** The commits that a host was examined with, the one with most rows first, each with its number of rows. */
function commitsOf({ findings }: HostReport): string {
  const rows = new Map<string, number>();
  for (const { commit = 'before' } of findings) rows.set(commit, (rows.get(commit) ?? 0) + 1);
  if (rows.size === 1) return [...rows.keys()].join('');
  return [...rows]
    .sort(([, one], [, other]) => other - one)
    .map(([commit, count]) => `${commit} (${count})`)
    .join(', ');
}

function cell(found: Finding | undefined): string {
  if (!found) return '–';
  const detail = found.detail.replace(/\s+/g, ' ').trim().slice(0, detailCharsMax);
  return detail === '' ? marks[found.verdict] : `${marks[found.verdict]}: ${detail}`;
}

const row = (cells: string[]) => `| ${cells.map(text => text.replaceAll('|', '\\|')).join(' | ')} |`;
