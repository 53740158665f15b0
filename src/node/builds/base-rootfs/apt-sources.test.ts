import { expect, test } from 'bun:test';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AtollError } from '../../../base/error.ts';
import { aptSourcesOf } from './apt-sources.ts';

const target = (fields: Record<string, string>) =>
  Object.entries({ 'Created-By': 'Packages', ...fields })
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');

test('a Debian machine of any release gives bookworm from its own mirrors, third parties left out', async () => {
  const sources = await aptSourcesOf(
    [
      target({ Origin: 'Debian', Label: 'Debian', Release: 'trixie', 'Repo-URI': 'http://mirror.example.org/debian/' }),
      target({
        Origin: 'Debian',
        Label: 'Debian-Security',
        Release: 'trixie-security',
        'Repo-URI': 'http://security.example.org/',
      }),
      target({ Origin: 'Somebody', Label: 'Tools', Release: 'stable', 'Repo-URI': 'http://tools.example.org/' }),
    ].join('\n\n'),
  );
  expect(sources.release).toBe('bookworm');
  expect(sources.deb822.split('\n\n').map(stanza => stanza.trim().split('\n').slice(1, 3))).toEqual([
    ['URIs: http://mirror.example.org/debian/', 'Suites: bookworm bookworm-updates'],
    ['URIs: http://security.example.org/', 'Suites: bookworm-security'],
  ]);
  expect(sources.keyrings).toEqual(['/usr/share/keyrings/debian-archive-keyring.gpg']);
});

test('an Ubuntu machine gives its own release with its pockets', async () => {
  const pocket = (release: string) =>
    target({
      Origin: 'Ubuntu',
      Label: 'Ubuntu',
      Codename: 'noble',
      Release: release,
      'Repo-URI': 'http://mirror.example.org/ubuntu/',
    });
  const sources = await aptSourcesOf(
    ['noble', 'noble-updates', 'noble-security', 'noble-backports', 'noble'].map(pocket).join('\n\n'),
  );
  expect(sources.release).toBe('noble');
  expect(sources.deb822.match(/^Suites: .*/gm)).toEqual([
    'Suites: noble',
    'Suites: noble-updates',
    'Suites: noble-security',
  ]);
});

test('keys are those that the machine’s own entries name, in both forms of sources', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-sources-'));
  try {
    const deb822 = join(dir, 'debian.sources');
    await writeFile(deb822, 'Types: deb\nSigned-By: /keys/first.gpg\n\nTypes: deb\nSigned-By: /keys/second.gpg\n');
    const list = join(dir, 'debian.list');
    await writeFile(
      list,
      '# mirror\ndeb [arch=amd64 signed-by=/keys/third.gpg] http://mirror.example.org/debian bookworm main\n',
    );
    const keyringAt = async (entry: string) => {
      const text = target({
        Origin: 'Debian',
        Label: 'Debian',
        'Repo-URI': 'http://mirror.example.org/',
        Sourcesentry: entry,
      });
      return (await aptSourcesOf(text)).keyrings;
    };
    expect(await keyringAt(`${deb822}:2`)).toEqual(['/keys/second.gpg']);
    expect(await keyringAt(`${list}:2`)).toEqual(['/keys/third.gpg']);
    expect(await keyringAt(join(dir, 'missing.list:1'))).toEqual(['/usr/share/keyrings/debian-archive-keyring.gpg']);
  } finally {
    await rm(dir, { recursive: true });
  }
});

test('a machine without such a mirror is told what to do', async () => {
  const failure = await aptSourcesOf('').catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(AtollError);
  expect((failure as AtollError).message).toContain('ATOLL_BASE_IMAGE');
});
