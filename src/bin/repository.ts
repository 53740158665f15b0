import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isCompiled } from '../base/process/own-program.ts';

/** The running checkout or release: below it are the things that set-up has built and that templates are made of. */
export const repository = isCompiled ? join(dirname(process.execPath), '..') : join(import.meta.dirname, '../..');

/** Node.js, npm and yarn for the base template, if a release brings them. */
export const nodePackagesDir = join(repository, 'dist/node-packages');

/** CRIU as set-up installed it, or the reason why it could not be installed. */
export const criuDir = join(repository, 'dist/criu');

/** gVisor's runsc as set-up installed it, or the reason why it could not be installed. */
export const runscDir = join(repository, 'dist/runsc');

/** The programs that set-up builds for every sandbox. */
export const builtPrograms = {
  helperBinary: join(repository, 'dist/helper'),
  agentDir: join(repository, 'dist/agent'),
  builderDir: join(repository, 'dist/builder'),
};

/** The built dashboard. */
export const dashboardDir = join(repository, 'dist/dashboard');

/** The built documentation. */
export const docsDir = join(repository, 'dist/docs');

/** The `atoll` of this checkout or package. */
export const program = join(repository, 'bin/atoll');

/** The definition's folder of a template that comes with Atoll; undefined: none has that name. */
export function shippedFolder(name: string): string | undefined {
  const folder = join(repository, 'templates', name);
  return /^[a-z0-9-]+$/.test(name) && existsSync(join(folder, 'template.json')) ? folder : undefined;
}
