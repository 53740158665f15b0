import { expect, test } from 'bun:test';
import { devContainerOf } from './dev-container.ts';

const build = { tag: 'image', dockerfile: 'FROM debian', context: '/srv/project', target: '', args: {} };
const planOf = (...builds: object[]) => JSON.stringify({ workspace: '/srv/project', builds });

test('copies are from the layers, stages are counted on, and what the build is told goes before defaults', () => {
  const content = { ...build, tag: 'Content', dockerfile: 'FROM scratch\nCOPY . /all/', context: '/srv/features' };
  const dockerfile =
    'ARG A=1\nFROM debian AS first\nARG A=2\nFROM first AS Wanted\n' +
    'COPY --from=0 /a /a\nCOPY --from=content /b /b\nCOPY c d/\nFROM first';
  const main = { ...build, dockerfile, target: 'wanted', args: { A: '3' } };
  const { stages, workspace } = devContainerOf(planOf(content, main));
  expect(workspace).toBe('/srv/project');
  expect(stages.map(({ name, from }) => [name, from])).toEqual([
    ['content', 'scratch'],
    ['first', 'debian'],
    ['wanted', 'first'],
  ]);
  expect(stages[1]).toMatchObject({ globalArgs: { A: '3' }, instructions: [{ kind: 'arg', name: 'A', value: null }] });
  const copies = stages.flatMap(stage => stage.instructions).filter(({ kind }) => kind === 'copy');
  expect(copies.map(copy => (copy.kind === 'copy' ? [copy.from, ...copy.sources] : []))).toEqual([
    [':dev-container', '/srv/features/.'],
    ['1', '/a'],
    ['content', '/b'],
    [':dev-container', '/srv/project/c'],
  ]);
});

test('a plan that can’t be carried out is refused with the reason', () => {
  const refused = (plan: string, reason: RegExp) => expect(() => devContainerOf(plan)).toThrow(reason);
  refused('{', /is not JSON/);
  refused('{}', /workspace must be/);
  refused(planOf({ ...build, dockerfile: 7 }), /builds\.0\.dockerfile must be/);
  refused(JSON.stringify({ workspace: '/', builds: [] }), /folder is not an absolute path/);
  refused(JSON.stringify({ workspace: '/srv/../..', builds: [] }), /folder is not an absolute path/);
  refused(planOf({ ...build, dockerfile: 'FROM x\nADD a.txt b.tar.gz /' }), /line 2: ADD does not unpack b\.tar\.gz/);
  refused(planOf({ ...build, target: 'other' }), /there is no stage other/);
  refused(planOf(build, build, build, build, build), /builds must be/);
});
