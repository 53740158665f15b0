import { expect, test } from 'bun:test';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from '../support/platform.ts';
import { testUnless } from '../support/skip.ts';

// The Helm chart, rendered by the real program for each file of values and compared with what was looked at before.
// HELM_WRITE=1 writes what is rendered now: read the difference, then commit it.

const version = '3.22.0';
const cached = join(process.env['ATOLL_CACHE_DIR'] ?? '/var/cache/atoll', `helm-${version}/helm`);
const helm = existsSync(cached) ? cached : Bun.which('helm');
const helmTest = testUnless(
  helm === null
    ? `there is no helm; with Go: GOBIN=/var/cache/atoll/helm-${version} go install helm.sh/helm/v3/cmd/helm@v${version}`
    : undefined,
);

const chart = join(repository, 'ops/helm/atoll');
const values = join(import.meta.dir, 'values');

function render(...options: string[]): { code: number; out: string; err: string } {
  const argv = [helm ?? '', 'template', 'atoll', chart, '--namespace', 'sandboxes', '--kube-version', '1.30.0'];
  const { exitCode, stdout, stderr } = Bun.spawnSync([...argv, ...options]);
  return { code: exitCode, out: stdout.toString(), err: stderr.toString() };
}

for (const file of readdirSync(values)) {
  helmTest(`the chart with values of ${file} is what it was`, () => {
    const { code, out, err } = render('--values', join(values, file));
    expect(err).toBe('');
    expect(code).toBe(0);
    const kept = join(import.meta.dir, 'rendered', file.replace('.yaml', '.txt'));
    if (process.env['HELM_WRITE'] === '1') writeFileSync(kept, out);
    expect(out).toBe(readFileSync(kept, 'utf8'));
  });
}

const wrong: readonly (readonly [option: string, says: RegExp])[] = [
  ['control.replicas=0', /control.replicas|minimum/],
  ['control.replica=3', /replica/],
  ['secrets.database=', /secrets.database|minLength/],
  ['settings.PORT=1', /PORT/],
  ['node.dataDir=data', /node.dataDir|pattern/],
];

for (const [option, says] of wrong)
  helmTest(`${option} is refused`, () => {
    const { code, err } = render('--set', option);
    expect(code).not.toBe(0);
    expect(err).toMatch(says);
  });

test('the chart is of the version of the platform', () => {
  const { version: platform } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as {
    version: string;
  };
  const text = readFileSync(join(chart, 'Chart.yaml'), 'utf8');
  expect(text).toContain(`\nversion: ${platform}\n`);
  expect(text).toContain(`\nappVersion: ${platform}\n`);
});
