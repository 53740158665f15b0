import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { alertRules, askedBy, dashboard, expressions, isBalanced } from '../docs/operations.ts';
import { repository } from '../support/platform.ts';
import { runToEnd } from '../support/process.ts';
import { findPromtool } from '../support/promtool.ts';
import { testUnless } from '../support/skip.ts';

// The alert rules and the dashboard in `ops`. The suite `docs` tests that the platform provides what they ask for.

test('every rule has what an alert needs, under a name of its own, and the guide says what to do about it', () => {
  const guide = readFileSync(join(repository, 'docs/guides/monitoring.md'), 'utf8');
  const rules = alertRules();
  expect(rules.length).toBeGreaterThan(10);
  for (const rule of rules) {
    expect(rule.alert).toMatch(/^Atoll[A-Za-z]+$/);
    expect(['warning', 'critical']).toContain(rule.labels.severity);
    expect(rule.annotations.summary).not.toBe('');
    expect(rule.annotations.description).toMatch(/\.$/);
    if (rule.for !== undefined) expect(rule.for).toMatch(/^\d+[smh]$/);
    expect(guide).toContain(`| \`${rule.alert}\` |`);
  }
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  const named = [...guide.matchAll(/^\| `(Atoll\w+)` \|/gm)].map(([, name]) => name);
  expect(named.toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted());
});

test('every panel has queries of its own, a place that no other takes, and a data source that is chosen', () => {
  const { panels, variables } = dashboard();
  expect(variables).toEqual(['datasource', 'job', 'instance']);
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const taken = new Set<string>();
  for (const { type, title, gridPos, targets } of panels) {
    expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        expect(taken.has(`${x} ${y}`), `${title} lies over another panel`).toBe(false);
        taken.add(`${x} ${y}`);
      }
    if (type === 'row') continue;
    expect(targets?.length, title).toBeGreaterThan(0);
    for (const { datasource } of targets ?? []) expect(datasource.uid).toBe('${datasource}');
    expect(new Set(targets?.map(({ refId }) => refId)).size).toBe(targets?.length ?? 0);
  }
});

test('every query closes its brackets and asks for something', () => {
  for (const { place, expr } of expressions()) {
    expect(isBalanced(expr), `${place}: ${expr}`).toBe(true);
    expect(askedBy(expr).length, `${place}: ${expr}`).toBeGreaterThan(0);
  }
  expect(isBalanced('sum(rate(a{b=")"}[5m])')).toBe(false);
  expect(askedBy('sum by (le) (rate(atoll_a_bucket{x="atoll_no", y!~"z"}[5m])) / atoll_b')).toEqual([
    { metric: 'atoll_a_bucket', labels: ['le', 'x', 'y'] },
    { metric: 'atoll_b', labels: ['le'] },
  ]);
});

const promtool = await findPromtool();

testUnless('missing' in promtool ? promtool.missing : undefined)(
  'promtool takes the rules, and each fires on what it is about and not on what is usual',
  async () => {
    const program = 'program' in promtool ? promtool.program : '';
    const rules = join(repository, 'ops/prometheus/alerts.yml');
    expect(await runToEnd([program, 'check', 'rules', rules])).toMatchObject({ exitCode: 0 });
    const cases = join(repository, 'test/docs/alerts.yml');
    const { exitCode, stdout, stderr } = await runToEnd([program, 'test', 'rules', cases]);
    expect(exitCode, `${stdout}${stderr}`).toBe(0);
    // A rule that no case triggers would pass unnoticed.
    const text = readFileSync(cases, 'utf8');
    for (const { alert } of alertRules()) expect(text).toContain(`alertname="${alert}"`);
  },
  360_000,
);
