import { AtollError, type ErrorCode } from '../base/error.ts';
import { createLog } from '../base/telemetry/log.ts';
import { parseArguments } from '../cli/terminal/arguments.ts';
import type { Command, Terminal } from '../cli/terminal/command.ts';
import { withProgress } from '../cli/terminal/progress.ts';
import { type Welcome, welcomeText } from '../cli/operator/welcome.ts';
import { apiKeyFile } from '../api/installation/data-directory.ts';
import { recordInstance } from './platform/instance.ts';
import type { Platform } from './platform/platform.ts';
import { type ServiceManager, serviceManager } from './systemd/notify.ts';
import { refusedExitCode } from './systemd/unit.ts';
import { beginStopping, interruptedExitCode, stopSignal } from './until-stopped.ts';
import { plainTextWarning } from './settings/plain-text.ts';
import { isWildcard, type Settings } from './settings/settings.ts';

/** `atoll up`: the platform in the foreground, until a signal stops it. */
export function upCommand(
  settings: () => Settings,
  environment: Record<string, string>,
  managed: ServiceManager,
): Command {
  return {
    name: 'up',
    usage: '[--json | --service] [--accept-database]',
    summary:
      'Runs the platform in the foreground; --json says on one line when it serves; --service says so to a ' +
      'service manager, and prints no key; --accept-database goes on with a database that is empty or older than ' +
      'the data directory',
    async run(args, terminal) {
      const { values } = parseArguments(args, {
        json: { type: 'boolean' },
        service: { type: 'boolean' },
        'accept-database': { type: 'boolean' },
      });
      const stop = stopSignal();
      const manager = values.service ? managed : serviceManager({});
      try {
        const own = settings();
        const log = createLog(own.logLevel, terminal.err);
        const { startPlatform } = await import('./platform/platform.ts');
        await using platform = await withProgress(terminal, 'Making the base template', onPhase =>
          startPlatform({
            settings: own,
            log,
            environment,
            onPhase(phase) {
              manager.notify(`STATUS=Making the base template: ${phase}`);
              onPhase(phase);
            },
            acceptDatabase: values['accept-database'] ?? false,
            signal: stop.signal,
          }),
        );
        terminal.err(plainTextWarning(own) ?? '');
        const about = aboutOf(own, platform);
        recordInstance(own.dataDir, about.url);
        const json = `${JSON.stringify({ ...about, pid: process.pid })}\n`;
        terminal.out(values.service ? `Atoll serves ${about.url}\n` : values.json ? json : welcomeText(about));
        manager.notify('READY=1', `STATUS=Serving ${about.url}`);
        using _ = keepNotifying(manager);
        await Promise.race([stop.asked, platform.failed]);
        manager.notify('STOPPING=1', 'STATUS=Stopping; sandboxes run on');
        beginStopping(terminal);
      } catch (error) {
        if (values.service) return failedUnder(manager, error, stop.signal, terminal);
        if (!stop.signal.aborted) throw error;
        terminal.err('Interrupted.\n');
        return interruptedExitCode;
      }
      return 0;
    },
  };
}

/** Codes of starts that would be refused again: trying once more is no use. A port, say, may be free soon. */
const lastingCodes: readonly ErrorCode[] = ['invalid', 'precondition', 'unimplemented'];

/** Says why in the manager's status, and by the exit code whether another try makes sense. */
function failedUnder(manager: ServiceManager, error: unknown, signal: AbortSignal, terminal: Terminal): number {
  if (signal.aborted) return 0;
  if (!(error instanceof AtollError)) throw error;
  manager.notify(`STATUS=${error.message.split('\n')[0]}`);
  terminal.err(`atoll up: ${error.message}\n`);
  return lastingCodes.includes(error.code) ? refusedExitCode : 1;
}

/** Notifies the service manager's watchdog that this event loop turns, until it is disposed of. */
function keepNotifying({ watchdogMs, notify }: ServiceManager): Disposable {
  if (watchdogMs === undefined) return { [Symbol.dispose]() {} };
  const timer = setInterval(() => notify('WATCHDOG=1'), watchdogMs / 3);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** What is said of a platform that serves. */
export function aboutOf(
  { host, domain, dataDir }: Settings,
  { port, tlsPort, authorityFile, apiKey, building, signInPath }: Platform,
): Welcome {
  // An address of IPv6 is in brackets where a port follows (RFC 3986 3.2.2).
  const address = host.includes(':') ? `[${host}]` : host;
  const name = isWildcard(host) ? domain : host === '127.0.0.1' ? 'localhost' : address;
  const ofPort = (host: string) => (tlsPort === 443 ? host : `${host}:${tlsPort}`);
  // The operator's own certificate has the domain, and seldom another name; one of the installation's authority has
  // both.
  const tls =
    tlsPort === null
      ? undefined
      : { url: `https://${ofPort(authorityFile === null ? domain : name)}`, authorityFile, domain: ofPort(domain) };
  const url = `http://${name}:${port}`;
  return {
    url,
    tls,
    apiKey,
    apiKeyFile: apiKeyFile(dataDir),
    domain: `${domain}:${port}`,
    dataDir,
    building,
    // Browsers keep sessions where nobody can read along.
    dashboard: signInPath && `${name === 'localhost' ? url : (tls?.url ?? url)}${signInPath}`,
  };
}
