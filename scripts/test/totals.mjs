import { readFileSync } from 'node:fs';

/** Lines of a failure's reason that the summary repeats: an assertion with its expected and actual value. */
const reasonLinesMax = 12;
const nothing = Object.freeze({ passed: 0, failed: 0, skipped: 0, skips: [], failures: [], files: [] });

/**
 * Counts of one suite's report: `{ passed, failed, skipped, skips, failures, files }`. `skips` names each skipped test,
 * `failures` each failed one with the first lines of its reason, and `files` the file of each failed one. A runner that
 * died without a report, or failed without a failed test, counts as one failure without a file.
 */
export function totalsOf(kind, report, exitCode) {
  const totals = kind === 'exit' ? { ...nothing, passed: exitCode === 0 ? 1 : 0 } : readReport(kind, report);
  if (exitCode !== 0 && totals.failed === 0) totals.failed = 1;
  if (exitCode === 0 && totals.passed + totals.failed + totals.skipped === 0) totals.failed = 1;
  return totals;
}

function readReport(kind, report) {
  let text;
  try {
    text = readFileSync(report, 'utf8');
  } catch {
    return { ...nothing };
  }
  return kind === 'junit' ? fromJunit(text) : fromTap(text);
}

function fromJunit(text) {
  let passed = 0;
  const skips = [];
  const failures = [];
  const files = [];
  // Every test case is one element, either empty or with its outcome inside.
  for (const [, attributes, body = ''] of text.matchAll(/<testcase\b([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)) {
    const attribute = name => unescaped(new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1] ?? '');
    const name = attribute('name') || 'unnamed';
    const failure = /<(?:failure|error)\b[^>]*?(?:\/>|>([\s\S]*?)<\/(?:failure|error)>)/.exec(body);
    if (/<skipped\b/.test(body)) skips.push(name);
    else if (failure) {
      failures.push(failureText(`${attribute('file')}: ${name}`, unescaped(failure[1] ?? '')));
      files.push(attribute('file'));
    } else passed++;
  }
  return { passed, failed: failures.length, skipped: skips.length, skips, failures, files };
}

function fromTap(text) {
  // The closing lines count every test once; the lines above count suites too.
  const last = name => Number([...text.matchAll(new RegExp(`^# ${name} (\\d+)$`, 'gm'))].pop()?.[1] ?? 0);
  const skips = [...text.matchAll(/^\s*ok \d+ - (.*?) # SKIP ?(.*)$/gm)].map(([, name, reason]) =>
    reason ? `${name}: ${reason}` : name,
  );
  // A failed test is followed by a block with its error; a block that only groups failed tests says so.
  const failed = [...text.matchAll(/^( *)not ok \d+ - (.*)\n(?:\1 {2}---\n([\s\S]*?)\n\1 {2}\.\.\.)?/gm)].filter(
    ([, , , block = '']) => !block.includes("failureType: 'subtestsFailed'"),
  );
  const failures = failed.map(([, , name, block = '']) =>
    failureText(name, block.slice(Math.max(block.indexOf('error:'), 0))),
  );
  return {
    passed: last('pass'),
    failed: last('fail') + last('cancelled'),
    skipped: last('skipped') + last('todo'),
    skips,
    failures,
    files: failed.map(([, , , block = '']) => /location: '(.+):\d+:\d+'/.exec(block)?.[1] ?? ''),
  };
}

function failureText(name, reason) {
  const lines = reason.split('\n').filter(line => line.trim() !== '');
  return [name, ...lines.slice(0, reasonLinesMax).map(line => `    ${line.trim()}`)].join('\n');
}

function unescaped(text) {
  return text.replace(/&(?:#(\d+)|(lt|gt|quot|apos|amp));/g, (_, code, name) =>
    code ? String.fromCodePoint(Number(code)) : { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' }[name],
  );
}
