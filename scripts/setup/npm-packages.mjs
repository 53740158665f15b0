import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Problem } from './problem.mjs';
import { step } from './progress.mjs';
import { run } from './run.mjs';

/** The pinned Bun of this machine type, relative to the repository. */
export function bunPath(root) {
  const name = process.arch === 'arm64' ? 'bun-linux-aarch64' : 'bun-linux-x64-baseline';
  return join(root, 'node_modules/@oven', name, 'bin/bun');
}

/** Installs exactly what package-lock.json says, unless node_modules holds it already. */
export async function installNpmPackages(root) {
  if (npmPackagesCurrent(root)) return;
  await step('Installing npm packages', tell =>
    run(['npm', 'ci', '--no-audit', '--no-fund', '--fetch-retries=4'], {
      cwd: root,
      // npm's warnings are for those who chose the packages.
      onLine: line => void (line.startsWith('npm warn') || tell(line)),
    }).catch(error => {
      const said = npmErrors(error.message);
      if (!isOfNetwork.test(said)) throw new Problem(`npm could not install the packages. It said:\n${said}`);
      throw new Problem(
        `npm could not fetch the packages. Does this machine reach ${registry()}? Behind a proxy set https_proxy, for a mirror \`npm config set registry\`. Nothing was installed; run it again when it does. npm said:\n${said}`,
      );
    }),
  );
  if (!existsSync(bunPath(root))) {
    throw new Problem(
      "npm left the Bun runtime out: it is an optional dependency. Unset npm's `omit=optional` and run `npm ci`.",
    );
  }
}

/** Whether npm's own record of its installation contains every package of the lock file that this machine needs. */
export function npmPackagesCurrent(root) {
  const wanted = packagesOf(join(root, 'package-lock.json'));
  const installed = packagesOf(join(root, 'node_modules/.package-lock.json'));
  if (!wanted || !installed || !existsSync(bunPath(root))) return false;
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === '' || (entry.optional && !installed[path])) return true;
    return installed[path]?.version === entry.version && installed[path]?.integrity === entry.integrity;
  });
}

function packagesOf(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).packages;
  } catch {
    return undefined;
  }
}

const registry = () => process.env.npm_config_registry ?? 'https://registry.npmjs.org';

/** npm's codes for a registry that it can't reach, or that refuses it. */
const isOfNetwork = /\b(E[A-Z]*(NOTFOUND|AGAIN|REFUSED|RESET|TIMEDOUT|TIMEOUT|UNREACH)|E[345]\d\d|CERT|network|fetch)/i;

/** The first of npm's lines that say what was wrong, or else the last lines of its output. */
function npmErrors(text) {
  const lines = text.split('\n');
  const errors = lines.filter(line => /^npm (error|ERR!)/.test(line));
  return (errors.length > 0 ? errors.slice(0, 3) : lines.slice(-3)).map(line => `  ${line}`).join('\n');
}
