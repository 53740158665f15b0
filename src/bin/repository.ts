import { join } from 'node:path';

/** The checkout that this runs from: what set-up has built and what templates are made of is found below it. */
export const repository = join(import.meta.dir, '../..');

/** Where set-up puts CRIU, or the reason why there is none. */
export const criuDir = join(repository, 'dist/criu');

/** Where set-up puts gVisor's runsc, or the reason why there is none. */
export const runscDir = join(repository, 'dist/runsc');

/** Where set-up puts the programs that every sandbox needs. */
export const builtPrograms = { helperBinary: join(repository, 'dist/helper'), agentDir: join(repository, 'dist/agent'), builderDir: join(repository, 'dist/builder') };
