import { readFile } from 'node:fs/promises';
import { AtollError } from '../../../base/error.ts';

/** Where the base template's packages come from: the mirrors, suites and keys that this machine's own apt uses. */
export type AptSources = {
  /** Code name of the release that the template gets, e.g. `bookworm`. */
  release: string;
  /** The sources, as a file in the deb822 style of sources.list(5). */
  deb822: string;
  /** Absolute paths of the keyrings that `deb822` names. */
  keyrings: string[];
};

/** One stanza of `apt-get indextargets`, by lower-cased field name. */
type IndexTarget = Record<string, string>;

/** The Debian release of the base template: the one whose Python is 3.11, as clients of the reference image expect. */
const debianRelease = 'bookworm';

const defaultKeyring = {
  debian: '/usr/share/keyrings/debian-archive-keyring.gpg',
  ubuntu: '/usr/share/keyrings/ubuntu-archive-keyring.gpg',
} as const;

/**
 * The sources for the base template, from the output of `apt-get indextargets`.
 * On Debian, `bookworm` of the machine's own mirrors, whatever release the machine runs; on Ubuntu, its own release.
 * Errors: `unavailable` when apt knows no mirror of either (its package lists may be missing).
 */
export async function aptSourcesOf(indexTargets: string): Promise<AptSources> {
  const targets = parseStanzas(indexTargets).filter(target => target['created-by'] === 'Packages');
  const debian = targets.filter(target => target['origin'] === 'Debian');
  const ubuntu = targets.filter(target => target['origin'] === 'Ubuntu');
  const main = debian.find(target => target['label'] === 'Debian');
  if (main) {
    const security = debian.find(target => target['label'] === 'Debian-Security');
    const suites = [debianRelease, `${debianRelease}-updates`];
    const stanzas = [await stanzaOf(main, suites, 'main', defaultKeyring.debian)];
    if (security) stanzas.push(await stanzaOf(security, [`${debianRelease}-security`], 'main', defaultKeyring.debian));
    return sourcesOf(debianRelease, stanzas);
  }
  // Pockets share one mirror or have one each (security): every pair of mirror and suite becomes a stanza.
  const release = ubuntu.map(target => target['codename'] ?? '').find(name => name !== '');
  if (release !== undefined) {
    const pockets = new Map<string, IndexTarget>();
    for (const target of ubuntu) {
      if (/-(updates|security)$/.test(target['release'] ?? '') || target['release'] === release) {
        pockets.set(`${target['repo-uri']} ${target['release']}`, target);
      }
    }
    const stanzas = await Promise.all(
      [...pockets.values()].map(target =>
        stanzaOf(target, [target['release'] ?? release], 'main universe', defaultKeyring.ubuntu),
      ),
    );
    return sourcesOf(release, stanzas);
  }
  throw new AtollError(
    'unavailable',
    'The base template needs a Debian or Ubuntu mirror, and this machine’s apt knows none. ' +
      'Run `apt-get update`, or set ATOLL_BASE_IMAGE to an archive of a root filesystem.',
  );
}

type Stanza = { text: string; keyring: string };

async function stanzaOf(target: IndexTarget, suites: string[], components: string, fallback: string): Promise<Stanza> {
  const keyring = (await signedBy(target['sourcesentry'] ?? '')) ?? fallback;
  const text = [
    'Types: deb',
    `URIs: ${target['repo-uri']}`,
    `Suites: ${suites.join(' ')}`,
    `Components: ${components}`,
    `Signed-By: ${keyring}`,
  ].join('\n');
  return { text, keyring };
}

function sourcesOf(release: string, stanzas: Stanza[]): AptSources {
  const keyrings = [...new Set(stanzas.map(stanza => stanza.keyring))];
  return { release, deb822: `${stanzas.map(stanza => stanza.text).join('\n\n')}\n`, keyrings };
}

/** The keyring file that the entry at `file:line` names; undefined if it names none or embeds its key. */
async function signedBy(sourcesEntry: string): Promise<string | undefined> {
  const [, file, line] = /^(.*):(\d+)$/.exec(sourcesEntry) ?? [];
  if (file === undefined) return undefined;
  const text = await readFile(file, 'utf8').catch(() => '');
  // One-line entries name it in brackets on that line, deb822 entries in the stanza that starts or continues there.
  const entry = file.endsWith('.sources') ? stanzaAt(text, Number(line)) : (text.split('\n')[Number(line) - 1] ?? '');
  const [, path] = /(?:^Signed-By:\s*|\bsigned-by=)(\/[^\s\],]+)/im.exec(entry) ?? [];
  return path;
}

/** The stanza with number `index`, counted from 1 as apt does, or the only one that there is. */
function stanzaAt(text: string, index: number): string {
  const stanzas = text.split(/\n\s*\n/).filter(stanza => stanza.trim() !== '');
  return stanzas[index - 1] ?? stanzas[0] ?? '';
}

function parseStanzas(text: string): IndexTarget[] {
  return text.split(/\n\n+/).map(stanza => {
    const fields = stanza.split('\n').map(line => {
      const colon = line.indexOf(':');
      return [line.slice(0, Math.max(colon, 0)).toLowerCase(), line.slice(colon + 1).trim()] as const;
    });
    return Object.fromEntries(fields);
  });
}
