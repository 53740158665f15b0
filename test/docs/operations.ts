import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from '../support/platform.ts';

/** A rule as Prometheus reads it. */
type Rule = {
  alert: string;
  expr: string;
  for?: string;
  labels: { severity: string };
  annotations: { summary: string; description: string };
};

type Panel = {
  id: number;
  type: string;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { refId: string; expr: string; legendFormat: string; datasource: { uid: string } }[];
};

const textOf = (path: string) => readFileSync(join(repository, path), 'utf8');

/** The alert rules, from all groups of the file. */
export function alertRules(): Rule[] {
  const { groups } = Bun.YAML.parse(textOf('ops/prometheus/alerts.yml')) as {
    groups: { name: string; rules: Rule[] }[];
  };
  return groups.flatMap(({ rules }) => rules);
}

/** The panels of the dashboard, and the names of its variables. */
export function dashboard(): { panels: Panel[]; variables: string[] } {
  const { panels, templating } = JSON.parse(textOf('ops/grafana/atoll.json')) as {
    panels: Panel[];
    templating: { list: { name: string }[] };
  };
  return { panels, variables: templating.list.map(({ name }) => name) };
}

/** Every query of rules and dashboard, by where it is. */
export const expressions = (): { place: string; expr: string }[] => [
  ...alertRules().map(({ alert, expr }) => ({ place: alert, expr })),
  ...dashboard().panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ place: title, expr }))),
];

/** A series in a query: its metric, the labels that it compares, and those that it groups by. */
type Asked = { metric: string; labels: string[] };

/** The series in a query. Its strings are removed first: they may contain anything. */
export function askedBy(expr: string): Asked[] {
  const bare = expr.replaceAll(/"[^"]*"/g, '""');
  const groups = [...bare.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(/,\s*/));
  return [...bare.matchAll(/\b((?:atoll|process)_\w+|up)\b(?:\{([^}]*)\})?/g)].map(
    ([, metric = '', matchers = '']) => ({
      metric,
      labels: [...groups, ...[...matchers.matchAll(/(\w+)\s*[!=]~?=?/g)].map(([, name = '']) => name)],
    }),
  );
}

/** Whether the brackets of a query match. */
export function isBalanced(expr: string): boolean {
  const open: string[] = [];
  const pairs: Record<string, string> = { ')': '(', ']': '[', '}': '{' };
  for (const character of expr.replaceAll(/"[^"]*"/g, '')) {
    if ('([{'.includes(character)) open.push(character);
    if (character in pairs && open.pop() !== pairs[character]) return false;
  }
  return open.length === 0;
}

/** The metrics of a /metrics answer, with the labels of their series. */
export function metricsOf(text: string): Map<string, Set<string>> {
  const metrics = new Map<string, Set<string>>();
  for (const [, name = '', kind] of text.matchAll(/^# TYPE (\S+) (\w+)$/gm)) {
    const names = kind === 'histogram' ? ['_bucket', '_sum', '_count'].map(end => `${name}${end}`) : [name];
    for (const each of names) metrics.set(each, new Set());
  }
  for (const [, name = '', labels = ''] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) metrics.get(name)?.add(label);
  }
  return metrics;
}
