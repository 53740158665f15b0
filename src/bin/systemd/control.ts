import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { apiKeyFile } from '../../api/installation/data-directory.ts';
import { AtollError, messageOf } from '../../base/error.ts';
import { readIfThere } from '../../base/small-file.ts';
import type { OwnInstallation } from '../../cli/operator/down.ts';
import type { ServiceControl, ServiceRole } from '../../cli/operator/install.ts';
import { requireNoInstance, runningUrl } from '../platform/instance.ts';
import { type HostFacts, hostFacts } from '../preflight/facts.ts';
import { requireUsableHost } from '../preflight/check.ts';
import { requireRole, roleNouns } from '../preflight/role.ts';
import { program } from '../repository.ts';
import { mergedSettings, settingsFileOf } from '../settings/file.ts';
import { readSettings, type Settings, settingsTable } from '../settings/settings.ts';
import { type Systemd, thisSystemd } from './systemctl.ts';
import { isUnitOf, roleOf, unitText } from './unit.ts';

const ownerOnly = { directory: 0o700, file: 0o600 } as const;
/** Everybody may read a unit; it holds no secret. */
const unitMode = 0o644;

/** The machine that gets a service. */
type Machine = { systemd: Systemd; facts: HostFacts };

const thisMachine = (environment: Record<string, string>): Machine => ({
  systemd: thisSystemd,
  facts: hostFacts(environment['PATH'] ?? ''),
});

/**
 * Turns a machine's installation into a service, and undoes it. Errors: `precondition`, `conflict`, `invalid`,
 * `not_found`.
 */
export function serviceControl(
  environment: Record<string, string>,
  own: OwnInstallation,
  { systemd, facts }: Machine = thisMachine(environment),
): ServiceControl {
  const settings = (): Settings => readSettings(mergedSettings(environment).values);
  return {
    async install(name, { start, role, invitation }, terminal) {
      const { dataDir } = settings();
      systemd.require(name);
      const isFirst = readIfThere(apiKeyFile(dataDir)) === undefined;
      if (role === 'control') requireShared(settings());
      else requireUsableHost(settings(), facts, isFirst && role === 'platform');
      const file = systemd.fileOf(name);
      requireOwnUnit(file, dataDir);
      requireRoleOfUnit(file, role);
      requireRole(dataDir, role);
      const wasActive = await systemd.isActive(name);
      if (!wasActive && runningUrl(dataDir) !== undefined)
        throw new AtollError(
          'conflict',
          `The platform of ${dataDir} runs already, without the service. End it with \`atoll stop\`; its ` +
            'sandboxes run on, and the service takes them over.',
        );
      if (!wasActive) requireNoInstance(dataDir);
      mkdirSync(dataDir, { recursive: true, mode: ownerOnly.directory });
      keepSettings(environment, terminal.err);
      if (role === 'node') {
        const { joinBefore } = await import('../cluster/machine.ts');
        await joinBefore(settings(), invitation);
      }
      const namesDataDir = dataDir !== settingsTable.dataDir.fallback;
      writeFileSync(file, unitText({ program, role, dataDir, namesDataDir }), { mode: unitMode });
      await systemd.run('daemon-reload');
      await systemd.run('enable', `${name}.service`);
      if (start) await started(systemd, name, role, terminal.err);
      return file;
    },
    async uninstall(name, { data }, terminal) {
      const { dataDir } = settings();
      systemd.require(name);
      const file = systemd.fileOf(name);
      if (!existsSync(file))
        throw new AtollError('not_found', `There is no service ${name}: ${file} is not there. Nothing was changed.`);
      requireOwnUnit(file, dataDir);
      // A control process has no sandboxes on its machine.
      const hasSandboxes = roleOf(readFileSync(file, 'utf8')) !== 'control';
      if (own.isThere()) own.announceDown(hasSandboxes);
      await systemd.run('disable', '--now', `${name}.service`);
      if (own.isThere()) {
        await own.endPlatform();
        if (hasSandboxes) await own.endSandboxes({ all: data }, terminal);
      }
      rmSync(file);
      await systemd.run('daemon-reload');
      // Clears what systemd remembers of a failed unit.
      await systemd.run('reset-failed', `${name}.service`).catch(() => {});
      if (data) rmSync(dataDir, { recursive: true, force: true });
      return dataDir;
    },
  };
}

/** Waits until it serves; if it does not, says where to look. */
async function started(systemd: Systemd, name: string, role: ServiceRole, say: (text: string) => void): Promise<void> {
  const takesLong = role === 'platform' ? '; a first start makes the base template, which takes a minute or more' : '';
  say(`Starting ${name}${takesLong}.\n`);
  try {
    await systemd.run('restart', `${name}.service`);
  } catch (cause) {
    throw new AtollError(
      'unavailable',
      `The service ${name} is installed and did not start; \`journalctl -u ${name} -n 20\` has what it said. Mend ` +
        `it and run \`systemctl start ${name}\`. ${messageOf(cause)}`,
      { cause },
    );
  }
}

/** We must not replace a unit of another installation or another owner. */
function requireOwnUnit(file: string, dataDir: string): void {
  if (!existsSync(file)) return;
  if (isUnitOf(readFileSync(file, 'utf8'), settingsFileOf(dataDir))) return;
  throw new AtollError(
    'conflict',
    `${file} is not the service of ${dataDir}. Set ATOLL_DATA_DIR to the directory that it is for, or choose ` +
      'another --name. Nothing was changed.',
  );
}

/** A data directory has one role: a machine of a cluster has no state, and control no sandboxes. */
function requireRoleOfUnit(file: string, role: ServiceRole): void {
  const before = existsSync(file) ? roleOf(readFileSync(file, 'utf8')) : undefined;
  if (before === undefined || before === role) return;
  throw new AtollError(
    'conflict',
    `${file} is the service of a ${roleNouns[before]}, and not of a ${roleNouns[role]}. Give the role that it has, ` +
      'another --name and ATOLL_DATA_DIR, or remove it with `atoll uninstall`. Nothing was changed.',
  );
}

function requireShared({ databaseUrl }: Settings): void {
  if (databaseUrl !== undefined) return;
  throw new AtollError(
    'precondition',
    'Control processes share their state in PostgreSQL: set ATOLL_DATABASE_URL. Nothing was changed.',
  );
}

/** The service has no environment: the current one is written to the settings file, which must not contradict it. */
function keepSettings(environment: Record<string, string>, say: (text: string) => void): void {
  const { sourceOf, file, values } = mergedSettings(environment);
  const inFile = mergedSettings({
    [settingsTable.dataDir.variable]: environment[settingsTable.dataDir.variable],
  }).values;
  const names = Object.values(settingsTable)
    .map(({ variable }) => variable)
    .filter(name => name !== settingsTable.dataDir.variable && sourceOf(name) === 'environment');
  const others = names.filter(name => inFile[name] !== undefined && inFile[name] !== values[name]);
  if (others.length > 0)
    throw new AtollError(
      'conflict',
      `${others.join(', ')} of this environment ${others.length === 1 ? 'is' : 'are'} not what ${file} says, ` +
        'which the service reads. Unset or change one of the two. Nothing was changed.',
    );
  const missing = names.filter(name => inFile[name] === undefined);
  if (missing.length === 0) return;
  const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const lines = missing.map(name => `${name}=${values[name]}\n`).join('');
  appendFileSync(file, before === '' || before.endsWith('\n') ? lines : `\n${lines}`, { mode: ownerOnly.file });
  say(`${missing.join(', ')} of this environment: written to ${file}.\n`);
}
