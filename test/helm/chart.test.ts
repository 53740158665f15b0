import { expect, test } from 'bun:test';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from '../support/platform.ts';
import { testUnless } from '../support/skip.ts';

// The Helm chart, rendered by the real program for each file of values and compared with a reviewed result.
// HELM_WRITE=1 writes the present result: read the difference, then commit it.

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
  ['settings.ATOLL_DATA_DIR=/srv', /settings.ATOLL_DATA_DIR can't be set: .* by the value node.dataDir\./],
  ['settings.ATOLL_PORT=4000', /settings.ATOLL_PORT can't be set: .* by the value control.service.port\./],
  ['settings.ATOLL_HOST=0.0.0.0', /settings.ATOLL_HOST can't be set: the chart sets it itself\./],
  ['secrets.store=s3,settings.ATOLL_STORE_SECRET=x', /ATOLL_STORE_SECRET can't be set: .* secrets.store\./],
];

for (const [option, says] of wrong)
  helmTest(`${option} is refused`, () => {
    const { code, err } = render('--set', option);
    expect(code).not.toBe(0);
    expect(err).toMatch(says);
  });

helmTest('machines get no setting of the store, and control has its key from a Secret', () => {
  const { out } = render('--values', join(values, 'store.yaml'), '--set', 'settings.ATOLL_LOG_LEVEL=debug');
  const partsOf = (kind: string) => out.split('\n---\n').filter(text => text.includes(`\nkind: ${kind}\n`));
  const [machines, control] = [partsOf('DaemonSet'), partsOf('Deployment')];
  expect([machines.length, control.length]).toEqual([2, 1]);
  for (const text of machines) expect(text).not.toContain('ATOLL_STORE');
  expect(machines.some(text => text.includes('ATOLL_LOG_LEVEL'))).toBe(true);
  for (const [name, key] of [
    ['KEY_ID', 'key-id'],
    ['SECRET', 'secret'],
  ])
    expect(control[0]).toContain(
      `- name: ATOLL_STORE_${name}\n              valueFrom: { secretKeyRef: { name: atoll-store, key: ${key} } }`,
    );
  expect(control[0]).toContain('name: ATOLL_STORE, value: "s3://bucket/prefix"');
});

test('the chart is of the version of the platform', () => {
  const { version: platform } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as {
    version: string;
  };
  const text = readFileSync(join(chart, 'Chart.yaml'), 'utf8');
  expect(text).toContain(`\nversion: ${platform}\n`);
  expect(text).toContain(`\nappVersion: ${platform}\n`);
});
