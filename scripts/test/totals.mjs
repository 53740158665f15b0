import { readFileSync } from 'node:fs';

/**
 * What one suite's report counted: `{ passed, failed, skipped, skips }`, where `skips` names each skipped test.
 * A runner that died without a report, or that failed without a failed test, counts as one failure: never as nothing.
 */
export function totalsOf(kind, report, exitCode) {
  const totals = kind === 'exit' ? { passed: exitCode === 0 ? 1 : 0, failed: 0, skipped: 0, skips: [] } : readReport(kind, report);
  if (exitCode !== 0 && totals.failed === 0) totals.failed = 1;
  if (exitCode === 0 && totals.passed + totals.failed + totals.skipped === 0) totals.failed = 1;
  return totals;
}

function readReport(kind, report) {
  let text;
  try {
    text = readFileSync(report, 'utf8');
  } catch {
    return { passed: 0, failed: 0, skipped: 0, skips: [] };
  }
  return kind === 'junit' ? fromJunit(text) : fromTap(text);
}

function fromJunit(text) {
  let [passed, failed] = [0, 0];
  const skips = [];
  // Every test case is one element, empty or with what became of it inside.
  for (const [, attributes, body = ''] of text.matchAll(/<testcase\b([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)) {
    if (/<skipped\b/.test(body)) skips.push(unescaped(/\bname="([^"]*)"/.exec(attributes)?.[1] ?? 'unnamed'));
    else if (/<(failure|error)\b/.test(body)) failed++;
    else passed++;
  }
  return { passed, failed, skipped: skips.length, skips };
}

function fromTap(text) {
  // The closing lines count every test once; the lines above count suites too.
  const last = name => Number([...text.matchAll(new RegExp(`^# ${name} (\\d+)$`, 'gm'))].pop()?.[1] ?? 0);
  const skips = [...text.matchAll(/^\s*ok \d+ - (.*?) # SKIP ?(.*)$/gm)].map(([, name, reason]) => (reason ? `${name}: ${reason}` : name));
  return { passed: last('pass'), failed: last('fail') + last('cancelled'), skipped: last('skipped') + last('todo'), skips };
}

function unescaped(text) {
  return text.replace(/&(lt|gt|quot|apos|amp);/g, (_, name) => ({ lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' })[name]);
}
