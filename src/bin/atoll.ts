import { doctorCommand } from '../cli/doctor.ts';
import { keyCommands } from '../cli/keys.ts';
import { runCommandLine } from '../cli/run.ts';
import { sandboxCommands } from '../cli/sandboxes.ts';
import { templateCommands } from '../cli/templates.ts';
import { volumeCommands } from '../cli/volumes.ts';
import { examineHost } from '../node/doctor/examine-host.ts';
import { withKeyStore } from './accounts.ts';
import { backupCommands } from './backup/commands.ts';
import { platformRequest } from './platform-request.ts';
import { criuDir } from './repository.ts';
import { readSettings } from './settings.ts';
import { downCommand, upCommand } from './up.ts';

// The command line of Atoll: the one place where all parts are put together, and where the environment is read.
const environment = Object.fromEntries(Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
const settings = () => readSettings(environment);
const request = platformRequest(settings);

const commands = [
  upCommand(settings, environment),
  downCommand(settings),
  doctorCommand(() => examineHost({ ...settings(), criuDir })),
  ...backupCommands(settings),
  ...sandboxCommands(request),
  ...volumeCommands(request),
  ...templateCommands(request),
  ...keyCommands(use => withKeyStore(settings(), use)),
];

process.exitCode = await runCommandLine(process.argv.slice(2), commands, {
  out: text => void process.stdout.write(text),
  err: text => void process.stderr.write(text),
  isInteractive: process.stderr.isTTY === true,
});
