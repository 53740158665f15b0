import { createHash } from 'node:crypto';
import { copyFileSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../setup/run.mjs';

/** Arguments of GNU tar that make equal archives from equal files. */
export const settled = epoch => [
  '--sort=name',
  '--format=gnu',
  `--mtime=@${epoch}`,
  '--owner=0',
  '--group=0',
  '--numeric-owner',
];

/** Writes `atoll-VERSION-ARCHITECTURE.tar.gz` with one folder of that name, and the bill of materials beside it. */
export async function writeArchive(tree, output, { version, architecture, epoch }) {
  const name = `atoll-${version}-linux-${architecture}`;
  const archive = join(output, `${name}.tar`);
  await run(['tar', ...settled(epoch), `--transform=s,^\\.,${name},S`, '-cf', archive, '-C', tree, '.']);
  // Without the name and time of the file that it compresses.
  await run(['gzip', '--no-name', '-6', archive]);
  copyFileSync(join(tree, 'sbom.json'), join(output, `atoll-${version}.cdx.json`));
}

/** Writes `SHA256SUMS` over all files of a release, in the format of `sha256sum --check`, and answers its text. */
export function writeChecksums(output) {
  const names = readdirSync(output)
    .filter(name => name !== 'SHA256SUMS')
    .sort();
  const sum = name =>
    createHash('sha256')
      .update(readFileSync(join(output, name)))
      .digest('hex');
  const text = names.map(name => `${sum(name)}  ${name}\n`).join('');
  writeFileSync(join(output, 'SHA256SUMS'), text);
  return text;
}
