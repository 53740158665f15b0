import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../setup/run.mjs';
import { needed } from '../setup/system-packages.mjs';
import { installTree } from './tree.mjs';

/** Packages that a start needs; set-up uses the others to build what a release already contains. */
export const runtimePackages = [...needed.filter(({ builds }) => !builds).map(({ name }) => name), 'util-linux'];

/**
 * For each unit that runs this package: its name, and the data directory that `atoll install` has written in its head
 * (empty: somebody else made it).
 */
const eachUnit = body => `for unit in /etc/systemd/system/*.service; do
      [ -f "$unit" ] && grep -q '^ExecStart="\\?/usr/\\(lib/atoll/\\)\\?bin/atoll"\\? ' "$unit" || continue
      name=$(basename "$unit" .service)
      directory=$(sed -n -e '/^\\[Unit\\]/q' -e 's|^#.* Settings: \\(/.*\\)/settings$|\\1|p' "$unit")
${body}
    done`;

/**
 * A removed package leaves no process, mount or rule; its data stays until it is purged. Removal is refused while a
 * service can't be ended, because the service would go on with files that are gone; and while a platform or a machine
 * of a cluster runs that was started without a service, which /run/atoll shows. A first start has a seed, or its ID in
 * a cluster, long before anything else.
 */
const beforeRemoval = `#!/bin/sh
set -e
if [ "$1" = remove ]; then
  ended=
  if [ -d /run/systemd/system ]; then
    ${eachUnit(`      if [ -n "$directory" ] && ATOLL_DATA_DIR="$directory" atoll uninstall --name "$name"; then
        [ "$directory" != /var/lib/atoll ] || ended=yes
        continue
      fi
      echo "The service $name could not be ended: mend what is said above, or end it and remove $unit yourself." >&2
      exit 1`)}
  fi
  for owner in /run/atoll/*/owner; do
    directory=$(cat "$owner" 2>/dev/null || true)
    pid=$(sed -n 's/.*"pid":\\([0-9]*\\).*/\\1/p' "$directory/instance.json" 2>/dev/null || true)
    case "$(readlink "/proc/\${pid:-none}/exe" || true)" in /usr/lib/atoll/*) ;; *) continue ;; esac
    if ATOLL_DATA_DIR="$directory" atoll down; then
      [ "$directory" != /var/lib/atoll ] || ended=yes
      continue
    fi
    echo "What runs on $directory could not be ended: mend what is said above, or end it yourself." >&2
    exit 1
  done
  if [ -z "$ended" ]; then
    for name in seed api-key node-id; do
      [ -e "/var/lib/atoll/$name" ] || continue
      ATOLL_DATA_DIR=/var/lib/atoll atoll down || true
      break
    done
  fi
fi
`;

/**
 * Purging also removes the data in the default directory, as Debian's policy requires (10.7.3, 6.8). A disk mounted
 * there stays, empty.
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

/**
 * A running service continues with the new version; its sandboxes run on. If its database would be changed or is of a
 * newer version, it continues unchanged and the operator decides: a service that does not restart is no reason to leave
 * the package half installed.
 */
const afterInstallation = `#!/bin/sh
set -e
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
  reloaded=
    ${eachUnit(`      [ -n "$directory" ] && systemctl --quiet is-active "$name.service" || continue
      if grep -q '^ExecStart=.* up --service$' "$unit"; then
        if ! plan=$(ATOLL_DATA_DIR="$directory" atoll upgrade --check --json); then
          echo "The service $name goes on with the version that it runs: this one can't take over its state, as is" \\
            "said above. Install a version that can, or restore a backup (docs/backup.md)." >&2
          continue
        fi
        case "$plan" in *'"pending": []'*) ;; *)
          echo "The service $name goes on with the version that it runs: this one changes its database. Run" \\
            "\\\`ATOLL_DATA_DIR=$directory atoll upgrade\\\`, which makes a backup before." >&2
          continue
        esac
      fi
      [ -n "$reloaded" ] || systemctl daemon-reload
      reloaded=yes
      systemctl restart "$name.service" ||
        echo "The service $name did not start again: \\\`journalctl -u $name -n 20\\\` has what it said." >&2`)}
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
