import { userInfo } from 'node:os';
import { platformVersion } from '../base/version.ts';
import { dashboardCommand } from '../cli/operator/dashboard.ts';
import { clusterCommands } from '../cli/operator/cluster.ts';
import { doctorCommand } from '../cli/operator/doctor.ts';
import { keyCommands } from '../cli/account/keys.ts';
import { runCommandLine } from '../cli/run.ts';
import type { WithAccounts } from '../cli/account/local-accounts.ts';
import { orphanCommands } from '../cli/operator/orphans.ts';
import { completionCommands } from '../cli/completion.ts';
import type { Command } from '../cli/terminal/command.ts';
import type { Connect } from '../cli/connection/connection.ts';
import { loginCommands } from '../cli/connection/login.ts';
import { copyCommand } from '../cli/sandbox/copy.ts';
import { createCommand } from '../cli/sandbox/create.ts';
import { execCommand } from '../cli/sandbox/exec.ts';
import { sandboxCommands } from '../cli/sandbox/list.ts';
import { logsCommand } from '../cli/sandbox/logs.ts';
import { shellCommand } from '../cli/sandbox/shell.ts';
import { showCommands } from '../cli/sandbox/show.ts';
import { stateCommands } from '../cli/sandbox/states.ts';
import { serviceCommands } from '../cli/operator/install.ts';
import { manualCommand } from '../cli/manual.ts';
import { nodeCommands } from '../cli/operator/nodes.ts';
import { secretCommands } from '../cli/secrets.ts';
import { webhookCommands } from '../cli/webhooks.ts';
import { teamCommands } from '../cli/account/teams.ts';
import { templateCommands } from '../cli/template/list.ts';
import { forwardCommand } from '../cli/tunnel/forward.ts';
import { sshCommands } from '../cli/tunnel/ssh.ts';
import { userCommands } from '../cli/account/users.ts';
import { volumeCommands } from '../cli/volumes.ts';
import { placeOf } from '../api/installation/place.ts';
import { backupCommands } from '../cli/operator/backup.ts';
import { localConnection, savedConnection, savedLogin, sshKeyFile } from './connection.ts';
import { inputOf } from './input.ts';
import {
  followAt,
  listOf,
  operatorRequest,
  ownPlatform,
  requestTo,
  signedInPlatform,
  type Target,
} from './platform-request.ts';
import { managerVariables, serviceManager } from './systemd/notify.ts';
import { serviceControl } from './systemd/control.ts';
import { configCommand } from './settings/config.ts';
import { effectiveSettings } from './settings/file.ts';
import { runningOrigin } from './platform/instance.ts';
import { program, shippedFolder } from './repository.ts';
import { downCommand, stopCommand } from '../cli/operator/down.ts';
import { ownInstallation } from './ending.ts';
import { roleCommands } from './cluster/commands.ts';
import { unreadOutput } from './unread-output.ts';
import { upCommand } from './up.ts';
import { ownUpgrade } from './upgrade.ts';

// Sandboxes read, as their own users, what root makes for them. Secrets name their own modes.
process.umask(0o022);

// The command line of Atoll: the one place that assembles all parts and reads the environment. Only this process talks
// to the service manager; with the same socket in its environment, crun would wait for a message from each sandbox.
const manager = serviceManager(process.env);
for (const name of managerVariables) delete process.env[name];
const environment = Object.fromEntries(
  Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
);
const settings = () => effectiveSettings(environment);
// Commands for sandboxes, templates and volumes use the installation that the user is signed in to, or this machine's
// own.
const login = () => savedConnection(environment);
const connect: Connect = () => login() ?? localConnection(settings());
const own = ownPlatform(settings);
const target: Target = () => {
  const connection = login();
  return connection ? signedInPlatform(connection)() : own();
};
const request = requestTo(target);
const list = listOf(target);
const follow = followAt(target);
// The audit log names the person behind sudo, not root.
const account = environment['SUDO_USER'] || userInfo().username;
// Each command loads what it alone needs: loading everything takes longer than most commands run.
const withAccounts: WithAccounts = async use => {
  const place = placeOf(settings());
  const { requirePair } = await import('../api/installation/check.ts');
  const { withLocalAccounts } = await import('../api/local/accounts.ts');
  await requirePair(place);
  return withLocalAccounts(place.database, account, use);
};

const commands: Command[] = [
  upCommand(settings, environment, manager),
  ...roleCommands(settings, environment, manager),
  stopCommand(ownInstallation(settings)),
  downCommand(ownInstallation(settings)),
  ...serviceCommands(serviceControl(environment, ownInstallation(settings))),
  ownUpgrade(settings, account),
  configCommand(environment),
  dashboardCommand(operatorRequest(settings), () => runningOrigin(settings().dataDir) ?? ''),
  doctorCommand(async () => (await import('./doctor.ts')).examineAll(settings())),
  ...backupCommands({
    async write(file, options) {
      const { writeBackup } = await import('../api/backup/write.ts');
      return writeBackup(placeOf(settings()), account, file, options);
    },
    async restore(file, signal) {
      const { restoreBackup } = await import('../api/backup/restore.ts');
      const place = placeOf(settings());
      return { dataDir: place.dataDir, ...(await restoreBackup(place, account, file, signal)) };
    },
  }),
  ...loginCommands(savedLogin(environment), async connection => {
    await requestTo(signedInPlatform(connection))('GET', '/v2/sandboxes');
  }),
  createCommand(request),
  ...sandboxCommands(request, list),
  ...showCommands(request, connect),
  shellCommand(connect),
  execCommand(connect),
  copyCommand(connect),
  ...['forward', 'sandbox forward'].map(name => forwardCommand(name, request, connect)),
  ...sshCommands(request, connect, { program: [program], keyFile: sshKeyFile(environment) }),
  logsCommand(request, follow),
  ...stateCommands(request),
  ...orphanCommands(operatorRequest(settings)),
  ...clusterCommands(operatorRequest(settings)),
  ...volumeCommands(request),
  ...secretCommands(request, list),
  ...webhookCommands(request),
  ...nodeCommands(operatorRequest(settings)),
  ...templateCommands(request, follow, shippedFolder),
  ...keyCommands(withAccounts),
  ...teamCommands(withAccounts),
  ...userCommands(withAccounts),
  ...completionCommands(() => commands, list),
  manualCommand(() => commands, platformVersion),
];

const unread = unreadOutput(process.stderr, code => process.exit(code));
process.stdout.on('error', unread.failed);

const input = inputOf(() => process.stdin, process.stdout);
process.exitCode = await runCommandLine(process.argv.slice(2), commands, {
  out: (text, taken) => void process.stdout.write(text, taken),
  err: text => void process.stderr.write(text),
  whenUnread: unread.before,
  // A terminal whose size nobody has set reports 0.
  ...(process.stdout.isTTY && process.stdout.columns > 0 && { columns: process.stdout.columns }),
  isInteractive: process.stderr.isTTY === true,
  input,
});
input.release();
