import { userInfo } from 'node:os';
import { systemCodeOf } from '../base/error.ts';
import { doctorCommand } from '../cli/doctor.ts';
import { keyCommands } from '../cli/keys.ts';
import { runCommandLine } from '../cli/run.ts';
import type { WithAccounts } from '../cli/local-accounts.ts';
import { orphanCommands } from '../cli/orphans.ts';
import { sandboxCommands } from '../cli/sandboxes.ts';
import { teamCommands } from '../cli/teams.ts';
import { templateCommands } from '../cli/templates.ts';
import { userCommands } from '../cli/users.ts';
import { volumeCommands } from '../cli/volumes.ts';
import { examineHost } from '../node/doctor/examine-host.ts';
import { withLocalAccounts } from './local-accounts.ts';
import { backupCommands } from './backup/commands.ts';
import { operatorRequest, platformList, platformRequest } from './platform-request.ts';
import { builtPrograms, criuDir, runscDir } from './repository.ts';
import { configCommand } from './config.ts';
import { effectiveSettings } from './settings-file.ts';
import { downCommand, stopCommand } from './down.ts';
import { upCommand } from './up.ts';

// The command line of Atoll: the one place where all parts are put together, and where the environment is read.
const environment = Object.fromEntries(Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
const settings = () => effectiveSettings(environment);
const request = platformRequest(settings);
// Who the audit log names: behind sudo, the person and not root.
const account = environment['SUDO_USER'] || userInfo().username;
const withAccounts: WithAccounts = use => withLocalAccounts(settings(), account, use);

const commands = [
  upCommand(settings, environment),
  stopCommand(settings),
  downCommand(settings),
  configCommand(environment),
  doctorCommand(() => examineHost({ ...settings(), criuDir, runscDir, ...builtPrograms })),
  ...backupCommands(settings, account),
  ...sandboxCommands(request, platformList(settings)),
  ...orphanCommands(operatorRequest(settings)),
  ...volumeCommands(request),
  ...templateCommands(request),
  ...keyCommands(withAccounts),
  ...teamCommands(withAccounts),
  ...userCommands(withAccounts),
];

// Who reads only the beginning, as `head` does, has what it wanted.
process.stdout.on('error', error => process.exit(systemCodeOf(error) === 'EPIPE' ? 0 : 1));

process.exitCode = await runCommandLine(process.argv.slice(2), commands, {
  out: text => void process.stdout.write(text),
  err: text => void process.stderr.write(text),
  isInteractive: process.stderr.isTTY === true,
});
