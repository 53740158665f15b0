import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../setup/run.mjs';
import { needed } from '../setup/system-packages.mjs';
import { installTree } from './tree.mjs';

/** Packages that a start needs; the others of set-up build what a release brings. */
export const runtimePackages = [...needed.filter(({ builds }) => !builds).map(({ name }) => name), 'util-linux'];

/**
 * A package that was removed leaves no process, mount or rule; its data stay until it is purged. Each service says in
 * its unit's head which data directory it is for, and one that can't be ended keeps the package: it would go on with
 * files that are gone. A first start has a seed long before it has a key.
 */
const beforeRemoval = `#!/bin/sh
set -e
if [ "$1" = remove ]; then
  services=
  if [ -d /run/systemd/system ]; then
    for unit in /etc/systemd/system/*.service; do
      [ -f "$unit" ] && grep -q '^ExecStart="\\?/usr/lib/atoll/bin/atoll"\\? ' "$unit" || continue
      services=yes
      name=$(basename "$unit" .service)
      directory=$(sed -n -e '/^\\[Unit\\]/q' -e 's|^#.* Settings: \\(/.*\\)/settings$|\\1|p' "$unit")
      if [ -n "$directory" ] && ATOLL_DATA_DIR="$directory" atoll uninstall --name "$name"; then continue; fi
      echo "The service $name could not be ended: mend what is said above, or end it and remove $unit yourself." >&2
      exit 1
    done
  fi
  if [ -z "$services" ] && { [ -e /var/lib/atoll/seed ] || [ -e /var/lib/atoll/api-key ]; }; then atoll down || true; fi
fi
`;

/**
 * Purging removes the data of the default directory too, as Debian's policy asks for (10.7.3, 6.8). A disk that is
 * mounted there stays, empty.
 */
const afterRemoval = `#!/bin/sh
set -e
if [ "$1" = purge ]; then
  for directory in /var/lib/atoll /var/cache/atoll; do
    if [ -d "$directory" ] && [ ! -L "$directory" ]; then find "$directory" -mindepth 1 -delete; fi
    rmdir "$directory" 2>/dev/null || rm -f "$directory" 2>/dev/null || true
  done
fi
`;

/** A service that runs goes on with the new version; its sandboxes run on. */
const afterInstallation = `#!/bin/sh
set -e
if [ "$1" = configure ] && [ -d /run/systemd/system ] && systemctl --quiet is-active atoll.service; then
  systemctl daemon-reload
  systemctl restart atoll.service
fi
`;

/** Writes `atoll_VERSION_ARCHITECTURE.deb`: everything in /usr/lib/atoll, and /usr/bin/atoll. */
export async function writeDebianPackage(tree, output, { version, description, architecture, epoch }) {
  const staging = join(output, 'deb');
  const control = join(staging, 'DEBIAN');
  installTree(tree, staging, epoch);
  mkdirSync(control);
  writeFileSync(
    join(control, 'control'),
    [
      'Package: atoll',
      `Version: ${version}`,
      `Architecture: ${architecture}`,
      'Maintainer: The Atoll authors <atoll@localhost>',
      'Section: admin',
      'Priority: optional',
      `Depends: ${[...runtimePackages, 'libc6 (>= 2.36)'].join(', ')}`,
      'Recommends: systemd',
      `Description: ${description}`,
      ' Runs code of AI agents and users in sandboxes on one machine, with the',
      ' interface of E2B. `atoll install` makes a service of it.',
      '',
    ].join('\n'),
  );
  const scripts = { prerm: beforeRemoval, postrm: afterRemoval, postinst: afterInstallation };
  for (const [name, text] of Object.entries(scripts)) writeFileSync(join(control, name), text, { mode: 0o755 });
  const file = join(output, `atoll_${version}_${architecture}.deb`);
  // Sorted, in one thread, and with the commit's time: equal contents make equal bytes.
  await run(['dpkg-deb', '--root-owner-group', '-Zzstd', '-z3', '--threads-max=1', '--build', staging, file], {
    env: { ...process.env, SOURCE_DATE_EPOCH: String(epoch) },
  });
  rmSync(staging, { recursive: true });
}
