import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { commitOf } from '../../../src/bin/commit.ts';
import { repository } from '../../support/platform.ts';

const document = join(repository, 'docs/proof.md');
const head = `# What was proved, and at which size

Each section says what one proof does and what its newest run showed. \`npm run prove -- --write\` writes this page;
[CONTRIBUTING.md](../CONTRIBUTING.md#proofs) has the commands. \`npm test\` has short forms of what can be short.
`;

/** The common lines of every proof's table; the last one if the proof is random. */
export function circumstances(startedAt: Date, seed?: number): string {
  return `| Date, commit | ${startedAt.toISOString().slice(0, 16).replace('T', ' ')}, ${commitOf(repository).slice(0, 7)} |
| Machine | ${cpus().length} processors, ${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${release()} |${seed === undefined ? '' : `\n| Seed | ${seed} |`}`;
}

/** Replaces the section of the same title in `docs/proof.md`, if requested. */
export function writeSection(title: string, text: string): void {
  if (!process.env['PROOF_WRITE']) return;
  const whole = existsSync(document) ? readFileSync(document, 'utf8') : head;
  const [start = head, ...sections] = whole.split(/^(?=## )/m);
  const section = `## ${title}\n\n${text.trim()}\n`;
  const place = sections.findIndex(other => other.startsWith(`## ${title}\n`));
  sections.splice(place < 0 ? sections.length : place, place < 0 ? 0 : 1, section);
  writeFileSync(document, `${[start, ...sections].map(part => part.trimEnd()).join('\n\n')}\n`);
}
