import { copyFileSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { bunPath } from './npm-packages.mjs';
import { step } from './progress.mjs';
import { run } from './run.mjs';
import { digestOf, isMadeFrom, markMadeFrom } from './stamp.mjs';

/** What the dashboard is made from, relative to the repository. */
const inputs = [
  'src/dashboard',
  'src/protocol',
  'src/base',
  'scripts/setup/dashboard.mjs',
  'tsconfig.json',
  'package-lock.json',
];

/**
 * Builds the dashboard to dist/dashboard if its source changed: a page, and files whose names contain their digests.
 */
export async function buildDashboard(root) {
  const output = join(root, 'dist/dashboard');
  const digest = digestOf(inputs.map(input => join(root, input)));
  if (isMadeFrom(output, digest)) return;
  await step('Building the dashboard', async tell => {
    const temporary = `${output}.new`;
    rmSync(temporary, { recursive: true, force: true });
    mkdirSync(join(temporary, 'assets'), { recursive: true });
    const argv = [
      'build',
      join(root, 'src/dashboard/main.tsx'),
      `--outdir=${join(temporary, 'assets')}`,
      '--production',
      '--splitting',
      '--target=browser',
      '--public-path=/dashboard/assets/',
      '--entry-naming=[name]-[hash].[ext]',
      '--chunk-naming=chunk-[name]-[hash].[ext]',
      '--asset-naming=[name]-[hash].[ext]',
    ];
    await run([bunPath(root), ...argv], { cwd: root, onLine: tell });
    writePage(root, temporary);
    rmSync(output, { recursive: true, force: true });
    renameSync(temporary, output);
    markMadeFrom(output, digest);
  });
}

/** Fonts, which the page refers to by the place they are copied to. */
const fonts = {
  __INTER__: '@fontsource-variable/inter/files/inter-latin-wght-normal.woff2',
  __MONO__: '@fontsource-variable/jetbrains-mono/files/jetbrains-mono-latin-wght-normal.woff2',
};

function writePage(root, folder) {
  const files = readdirSync(join(folder, 'assets'));
  const named = (start, end) => {
    const [name, ...more] = files.filter(file => file.startsWith(start) && file.endsWith(end));
    if (name === undefined || more.length > 0) throw new Error(`the build has not one ${start}*${end}: ${files}`);
    return name;
  };
  let page = readFileSync(join(root, 'src/dashboard/index.html'), 'utf8')
    .replace('__STYLE__', named('main-', '.css'))
    .replace('__SCRIPT__', named('main-', '.js'));
  for (const [mark, path] of Object.entries(fonts)) {
    const source = join(root, 'node_modules', path);
    const name = `${basename(path, '.woff2')}-${digestOf([source], '', root).slice(0, 8)}.woff2`;
    copyFileSync(source, join(folder, 'assets', name));
    page = page.replaceAll(mark, name);
  }
  writeFileSync(join(folder, 'index.html'), page);
}
