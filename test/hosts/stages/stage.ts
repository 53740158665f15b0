import type { Finding } from '../inside/feature.ts';
import type { Machine } from '../lab/machine.ts';

/** Where a stage works, and what it may assume about the machine. */
export type Scene = {
  machine: Machine;
  /** The checkout on the machine. */
  checkout: string;
  /** Everything that programs print is added to this file. */
  log: string;
  /** Names of the requested single features; empty: all. */
  only: string[];
  dataDir: string;
  port: number;
  /** The Debian package on the machine, if Atoll is installed from it. */
  debianPackage?: string;
};

/**
 * A part of the examination of a host. A stage that throws is a failure named after it; the next one runs all the same.
 */
export type Stage = {
  name: string;
  /** The feature that all further stages need: if it fails, there is nothing to examine. */
  starts?: string;
  run(scene: Scene): Promise<Finding[]>;
};

/** The runtime that npm has installed for the machine's type. */
const bun = (checkout: string) => `$(ls ${checkout}/node_modules/@oven/*/bin/bun)`;

/**
 * Runs a script in the checkout on the machine, with the variables that a client of the platform needs, and answers its
 * output.
 */
export async function sh(
  scene: Scene,
  script: string,
  timeoutMs: number,
): Promise<{ exitCode: number; output: string }> {
  const { checkout, dataDir, port, log } = scene;
  const url = `http://localhost:${port}`;
  const prelude = [
    `cd ${checkout}`,
    `export ATOLL_DATA_DIR=${dataDir} ATOLL_PORT=${port} ATOLL_TEMPLATES=none ATOLL_TEMPLATE_DRIVERS=on-gvisor=gvisor`,
    `export E2B_API_KEY=$(cat ${dataDir}/api-key 2>/dev/null) E2B_API_URL=${url} E2B_SANDBOX_URL=${url} E2B_DOMAIN=localhost:${port}`,
    `bun=${bun(checkout)}`,
  ];
  return scene.machine.run(`${prelude.join('\n')}\n${script}`, { timeoutMs, log });
}

/** The findings that a program printed, a line of JSON each. */
export function findingsIn(output: string): Finding[] {
  return output.split('\n').flatMap(line => {
    if (!line.startsWith('{"feature":')) return [];
    return [JSON.parse(line) as Finding];
  });
}

/** A finding for something that either holds or does not. */
export const finding = (feature: string, works: boolean, detail: string): Finding => ({
  feature,
  verdict: works ? 'works' : 'fails',
  detail: detail.trim().slice(-600),
});
