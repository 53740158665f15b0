import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { allocatorSettings } from '../../base/process/allocator.ts';
import { readIfThere } from '../../base/small-file.ts';
import type { ServiceRole } from '../../cli/operator/install.ts';

/** Facts of a unit. */
type UnitFacts = {
  /** The `atoll` to start. */
  program: string;
  role: ServiceRole;
  dataDir: string;
  /** The data directory was chosen explicitly and is not the default. */
  namesDataDir: boolean;
};

const serviceRoles: readonly ServiceRole[] = ['platform', 'control', 'node'];
/** The arguments that `atoll` is started with. */
const commandOf: Readonly<Record<ServiceRole, string>> = { platform: 'up', control: 'control', node: 'node' };

/** A first start makes the base template, from the distribution's mirror. */
const startMinutes = 20;
/** The supervisor reports twice within this time that its event loop turns. */
const watchdogSeconds = 60;
/** Exit code of a start that would be refused again, so it is not retried (EX_CONFIG of sysexits(3)). */
export const refusedExitCode = 78;

/**
 * Capabilities that no part of the platform uses: loading modules, the clock, raw I/O, the audit trail. A user
 * namespace has a full set of its own, so sandboxes lose nothing.
 */
const droppedCapabilities = [
  'CAP_AUDIT_CONTROL',
  'CAP_AUDIT_READ',
  'CAP_BLOCK_SUSPEND',
  'CAP_MAC_ADMIN',
  'CAP_MAC_OVERRIDE',
  'CAP_SYS_BOOT',
  'CAP_SYS_MODULE',
  'CAP_SYS_PACCT',
  'CAP_SYS_RAWIO',
  'CAP_SYS_TIME',
  'CAP_WAKE_ALARM',
];

/** Whether a unit's text belongs to the installation with this settings file, which its head names. */
export function isUnitOf(text: string, settingsFile: string): boolean {
  const [head = ''] = text.split('\n[Unit]');
  return head.split('\n').some(line => line.endsWith(` Settings: ${settingsFile}`));
}

/** The role that a unit runs; undefined if the text names none. */
export function roleOf(text: string): ServiceRole | undefined {
  const command = /^ExecStart=.* (up|control|node) --service$/m.exec(text)?.[1];
  return serviceRoles.find(role => commandOf[role] === command);
}

/** Names of the units in a systemd folder that run the installation with this settings file. */
export function unitsOf(settingsFile: string, folder: string): string[] {
  const files = existsSync(folder) ? readdirSync(folder).filter(name => name.endsWith('.service')) : [];
  return files
    .filter(name => isUnitOf(readIfThere(join(folder, name)) ?? '', settingsFile))
    .map(name => name.slice(0, -'.service'.length));
}

/** The text of the unit that runs an installation in its role under systemd (systemd.service(5), systemd.exec(5)). */
export function unitText({ program, role, dataDir, namesDataDir }: UnitFacts): string {
  const allocator = Object.entries(allocatorSettings)
    .map(([name, value]) => `Environment=${name}=${value}\n`)
    .join('');
  const environment = namesDataDir ? `Environment=${quoted(`ATOLL_DATA_DIR=${dataDir}`)}\n` : '';
  return `# Made by \`atoll install\`, which replaces it. Changes of your own: \`systemctl edit\`.
# Settings: ${dataDir}/settings
[Unit]
Description=Atoll, sandboxes for code that nobody has reviewed
After=network-online.target nss-lookup.target time-sync.target nftables.service postgresql.service
Wants=network-online.target
RequiresMountsFor=${quoted(dataDir)}
# A database or a name server that is away may be so for long: what never heals is refused, and not tried again.
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart=${quoted(program)} ${commandOf[role]} --service
${environment}${allocator}Environment=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
SyslogIdentifier=atoll
TimeoutStartSec=${startMinutes}min
TimeoutStopSec=60
WatchdogSec=${watchdogSeconds}
WatchdogSignal=SIGKILL
Restart=on-failure
RestartSec=5
# A start that was refused: trying again changes nothing.
RestartPreventExitStatus=${refusedExitCode}
# The supervisor ends the platform's processes in their order, and the kernel ends them with it. All others are
# sandboxes: they run on.
KillMode=process
# systemd takes controllers away from groups that nobody was given; with this it leaves cpu, memory and pids on.
Delegate=yes
Slice=system.slice
LimitNOFILE=1048576
LimitNPROC=infinity
TasksMax=infinity
OOMPolicy=continue
KeyringMode=private
CapabilityBoundingSet=~${droppedCapabilities.join(' ')}
# No option that gives the service mounts of its own (ProtectSystem=, PrivateTmp= …): the mounts of sandboxes that run
# on have to be there for the next start. No filter of system calls and no NoNewPrivileges=: sandboxes would inherit
# both.

[Install]
WantedBy=multi-user.target
`;
}

/** A value in the quotes of a unit file, with its specifiers taken literally (systemd.syntax(7)). */
function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&').replaceAll('%', '%%').replaceAll('$', '$$$$')}"`;
}
