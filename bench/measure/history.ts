import { existsSync, readFileSync, writeFileSync } from 'node:fs';

const title = `# Whole runs of the bench

Kept by \`npm run bench\`, newest first; runs with \`--quick\` are not. Compare only what one machine has measured.
`;

/** The commit of a checkout, and whether files differ from it; `unknown` if there is none. */
export function commitOf(folder: string): string {
  const git = (...argv: string[]) =>
    Bun.spawnSync(['git', ...argv], { cwd: folder, stderr: 'ignore' })
      .stdout.toString()
      .trim();
  const commit = git('rev-parse', '--short', 'HEAD');
  if (commit === '') return 'unknown';
  return git('status', '--porcelain', '--untracked-files=no') === '' ? commit : `${commit} and changes`;
}

/** Writes a run into the history file, before the others. `report`: its tables in Markdown. */
export function keepInHistory(file: string, commit: string, report: string): void {
  const before = existsSync(file) ? readFileSync(file, 'utf8').slice(title.length) : '';
  writeFileSync(file, `${title}\n## ${commit}\n${report.trim()}\n${before}`);
}
