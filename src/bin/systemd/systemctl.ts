import { existsSync } from 'node:fs';
import { AtollError } from '../../base/error.ts';
import { runCommand } from '../../base/process/command.ts';
import { unitFileOf } from '../../base/process/set-up.ts';

/** Longer than the unit allows for a first start. */
const commandTimeoutMs = 25 * 60_000;
const unitName = /^[a-z][a-z0-9-]{0,30}$/;

/** Whether systemd manages this machine (sd_booted(3)). */
export const isBooted = (): boolean => existsSync('/run/systemd/system');

/** Fails if systemd does not manage the machine, and for an invalid name. */
function requireSystemd(name: string): void {
  if (!unitName.test(name))
    throw new AtollError(
      'invalid',
      `'${name}' is no name for the service: lower-case letters, digits and hyphens, at most 31, a letter first.`,
    );
  if (!isBooted())
    throw new AtollError(
      'precondition',
      'systemd does not run this machine. Let your own service manager run `atoll up --service` (of a cluster: ' +
        '`atoll control --service`, `atoll node --service`), with SIGTERM to end it (docs/operating.md).',
    );
}

/** Runs `systemctl`. Errors: `internal` with its last lines. */
export async function systemctl(...args: string[]): Promise<string> {
  return runCommand(['systemctl', ...args], { timeoutMs: commandTimeoutMs });
}

/** Whether a unit runs or is about to. */
export async function isActive(name: string): Promise<boolean> {
  const state = await systemctl('show', '--property=ActiveState', '--value', `${name}.service`);
  return ['active', 'activating', 'reloading'].includes(state.trim());
}

/** What is asked of the machine's service manager. */
export type Systemd = {
  /** See `requireSystemd`. */
  require(name: string): void;
  fileOf(name: string): string;
  isActive(name: string): Promise<boolean>;
  /** See `systemctl`. */
  run(...args: string[]): Promise<string>;
};

/** The service manager of this machine. */
export const thisSystemd: Systemd = { require: requireSystemd, fileOf: unitFileOf, isActive, run: systemctl };
