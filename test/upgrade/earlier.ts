import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { migrations } from '../../src/api/database/migrate.ts';
import { repository } from '../support/platform.ts';
import { runToEnd } from '../support/process.ts';

// Earlier versions of the platform, made from the history of the checkout.

const setUpTimeoutMs = 15 * 60_000;

const git = (...args: string[]) =>
  execFileSync('git', ['-C', repository, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();

/** Commits of two earlier versions. */
type Earlier = {
  /** The last commit with the previous schema. */
  before: string;
  /** The first commit with this schema. */
  same: string;
  /** The migrations between the two. */
  brings: string[];
};

/** Finds them by the newest migration's name, which the source has from that commit on; or says why it can't. */
export function earlierVersions(): Earlier | { missing: string } {
  const newest = Object.keys(migrations).toSorted().at(-1) ?? '';
  try {
    const given = process.env['UPGRADE_FROM'];
    const [same] = git('log', `-S'${newest}'`, '--format=%H', '--reverse', '--', 'src').split('\n');
    if (!same) return { missing: 'the history does not say when the newest migration came' };
    return { same, before: given ?? git('rev-parse', `${same}^`), brings: [newest] };
  } catch {
    return { missing: 'the checkout has no history, or a short one (git fetch --unshallow)' };
  }
}

/** Makes a checkout of a commit at `place`, sets it up as its own `npm run up` does, and answers its program. */
export async function setUp(commit: string, place: string): Promise<string> {
  await must(['git', 'clone', '--quiet', '--shared', '--no-checkout', repository, place]);
  await must(['git', '-C', place, 'checkout', '--quiet', '--detach', commit]);
  await must(['node', join(place, 'scripts/prepare.mjs')], place);
  if (!readdirSync(join(place, 'dist')).includes('agent')) throw new Error(`${commit} was not set up`);
  return join(place, 'bin/atoll');
}

async function must(argv: string[], cwd?: string): Promise<void> {
  const { exitCode, stdout, stderr } = await runToEnd(argv, { timeoutMs: setUpTimeoutMs, ...(cwd && { cwd }) });
  if (exitCode !== 0) throw new Error(`${argv.join(' ')} ended with ${exitCode}:\n${stdout}${stderr}`);
}
