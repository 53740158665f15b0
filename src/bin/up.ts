import { createLog } from '../base/telemetry/log.ts';
import { parseArguments } from '../cli/terminal/arguments.ts';
import type { Command } from '../cli/terminal/command.ts';
import { withProgress } from '../cli/terminal/progress.ts';
import { type Welcome, welcomeText } from '../cli/operator/welcome.ts';
import { apiKeyFile } from '../api/installation/data-directory.ts';
import { goesDown, recordInstance, type Ways } from './platform/instance.ts';
import type { Platform } from './platform/platform.ts';
import type { ServiceManager } from './systemd/notify.ts';
import { runUntilStopped } from './until-stopped.ts';
import { plainTextWarning } from './settings/plain-text.ts';
import { isWildcard, type Settings } from './settings/settings.ts';

/** `atoll up`: runs the platform in the foreground until a signal stops it. */
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
      return runUntilStopped(
        terminal,
        async (signal, manager) => {
          const own = settings();
          const log = createLog(own.logLevel, terminal.err);
          const { startPlatform } = await import('./platform/platform.ts');
          const platform = await withProgress(terminal, 'Making the base template', onPhase =>
            startPlatform({
              settings: own,
              log,
              environment,
              onPhase(phase) {
                manager.notify(`STATUS=Making the base template: ${phase}`);
                onPhase(phase);
              },
              acceptDatabase: values['accept-database'] ?? false,
              signal,
            }),
          );
          terminal.err(plainTextWarning(own) ?? '');
          const about = aboutOf(own, platform);
          recordInstance(own.dataDir, waysTo(own, platform));
          const json = `${JSON.stringify({ ...about, pid: process.pid })}\n`;
          terminal.out(values.service ? `Atoll serves ${about.url}\n` : values.json ? json : welcomeText(about));
          return { ...platform, serving: `Serving ${about.url}`, goesDown: () => goesDown(own.dataDir) };
        },
        values.service ? { command: 'up', manager: managed } : undefined,
      );
    },
  };
}

/**
 * Where commands on this machine and browsers reach a serving platform. The domain leads to it for others; from here it
 * may lead nowhere, to another control process, or to a port that the firewall has closed.
 */
export function waysTo(settings: Settings, platform: Platform): Ways {
  const { host } = settings;
  const { url, origin } = waysOf(settings, platform);
  return { url: isWildcard(host) ? `http://${host === '::' ? '[::1]' : '127.0.0.1'}:${platform.port}` : url, origin };
}

/** What is printed about a serving platform. */
export function aboutOf(settings: Settings, platform: Platform): Welcome {
  const { domain, dataDir } = settings;
  const { port, apiKey, building, signInPath } = platform;
  const { url, tls, origin } = waysOf(settings, platform);
  return {
    url,
    tls,
    apiKey,
    apiKeyFile: apiKeyFile(dataDir),
    domain: `${domain}:${port}`,
    dataDir,
    building,
    dashboard: signInPath && `${origin}${signInPath}`,
  };
}

function waysOf({ host, domain }: Settings, { port, tlsPort, authorityFile }: Platform) {
  // An IPv6 address is in brackets before a port (RFC 3986 3.2.2).
  const address = host.includes(':') ? `[${host}]` : host;
  const name = isWildcard(host) ? domain : host === '127.0.0.1' ? 'localhost' : address;
  const ofPort = (host: string) => (tlsPort === 443 ? host : `${host}:${tlsPort}`);
  // The operator's certificate has the domain and seldom another name; one of the installation's own authority has
  // both.
  const tls =
    tlsPort === null
      ? undefined
      : { url: `https://${ofPort(authorityFile === null ? domain : name)}`, authorityFile, domain: ofPort(domain) };
  const url = `http://${name}:${port}`;
  // Browsers keep sessions only where nobody can read along.
  return { url, tls, origin: name === 'localhost' ? url : (tls?.url ?? url) };
}
