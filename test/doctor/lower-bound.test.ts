import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { kernelMin } from '../../src/node/doctor/kernel.ts';
import { reportsIn } from '../hosts/report.ts';
import { repository } from '../support/platform.ts';

const textOf = (path: string) => readFileSync(join(repository, path), 'utf8');
const versionOf = (kernel: string) => /^\d+\.\d+/.exec(kernel)?.[0] ?? '';

test('the oldest and the newest kernel that README names were run, and the doctor refuses older ones', () => {
  const reports = reportsIn(textOf('docs/hosts.md'));
  const kernels = reports
    .map(({ kernel }) => versionOf(kernel))
    .toSorted((one, other) => Bun.semver.order(`${one}.0`, `${other}.0`));
  expect(kernels.length).toBeGreaterThan(3);
  expect(kernels[0]).toBe(kernelMin.join('.'));
  expect(textOf('README.md')).toContain(`own kernels, ${kernels[0]} to ${kernels.at(-1)}:`);
});

test('what fails on a host is not left in the table', () => {
  const findings = reportsIn(textOf('docs/hosts.md')).flatMap(report => report.findings);
  expect(findings.length).toBeGreaterThan(100);
  expect(findings.filter(({ verdict }) => verdict === 'fails')).toEqual([]);
});
