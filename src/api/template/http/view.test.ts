import { expect, test } from 'bun:test';
import type { ContentOfTemplate } from '../rules/content.ts';
import { shownNames, templateContentView } from './view.ts';

const names = [
  { namespace: '', alias: 'python' },
  { namespace: 'acme', alias: 'node' },
] as never[];

const content = (config: object) =>
  ({
    build: { buildId: 'b', config: { defaultUser: 'user', defaultWorkdir: '', ...config } },
    layers: [
      { digest: 'sha256:a', sizeBytes: null, sharedBy: [] },
      { digest: 'sha256:b', sizeBytes: 7, sharedBy: [{ templateId: 't', names }] },
    ],
  }) as unknown as ContentOfTemplate;

test('names are shown with their namespace, where they have one', () => {
  expect(shownNames(names)).toEqual(['python', 'acme/node']);
});

test('the content of a template has only what its build says', () => {
  expect(templateContentView(content({}))).toEqual({
    buildID: 'b',
    user: 'user',
    layers: [
      { digest: 'sha256:a', sharedBy: [] },
      {
        digest: 'sha256:b',
        sizeBytes: 7,
        sharedBy: [{ templateID: 't', aliases: ['python', 'node'], names: ['python', 'acme/node'] }],
      },
    ],
  });
});

test('a working directory and commands are shown where there are any', () => {
  const told = { startCommand: 'serve', readyCommand: 'curl localhost' };
  expect(templateContentView(content({ ...told, defaultWorkdir: '/srv' }))).toMatchObject({ ...told, workdir: '/srv' });
  expect(templateContentView(content({ startCommand: 'serve' }))).not.toHaveProperty('readyCommand');
});
