import { readIfThere } from './identity.ts';
import { AtollError } from '../base/error.ts';
import { createLog } from '../base/log.ts';
import { parseArguments } from '../cli/arguments.ts';
import type { Command } from '../cli/command.ts';
import { withProgress } from '../cli/progress.ts';
import { type Welcome, welcomeText } from '../cli/welcome.ts';
import { examineHost } from '../node/doctor/examine-host.ts';
import { apiKeyFile } from './accounts.ts';
import { noteInstance } from './instance.ts';
import { type Platform, startPlatform } from './platform.ts';
import { builtPrograms, criuDir, runscDir } from './repository.ts';
import { isWildcard, type Settings } from './settings.ts';

/** Conventional exit code for "ended by SIGINT", when it comes before the platform serves. */
const interruptedExitCode = 130;

/** How long requests in flight and the pool of blanks may take to end; what is left is cleaned up by the next start. */
const stopTimeoutMs = 30_000;

/** `atoll up`: the platform in the foreground, until it is told to stop. */
export function upCommand(settings: () => Settings, environment: Record<string, string>): Command {
  return {
    name: 'up',
    usage: '[--json] [--accept-database]',
    summary: 'Runs the platform in the foreground; --json says on one line when it serves; --accept-database goes on with a database that is empty or older than the data directory',
    async run(args, terminal) {
      const { values } = parseArguments(args, { json: { type: 'boolean' }, 'accept-database': { type: 'boolean' } });
      const own = settings();
      const log = createLog(own.logLevel, terminal.err);
      const stop = stopSignal();
      try {
        // A machine that has run sandboxes before is not examined again: starts stay fast.
        if (readIfThere(apiKeyFile(own.dataDir)) === undefined) await requireAbleHost(own);
        await using platform = await withProgress(terminal, 'Making the base template', onPhase =>
          startPlatform({ settings: own, log, environment, onPhase, acceptDatabase: values['accept-database'] ?? false, signal: stop.signal }),
        );
        const about = aboutOf(own, platform);
        noteInstance(own.dataDir, about.url);
        terminal.out(values.json ? `${JSON.stringify({ ...about, pid: process.pid })}\n` : welcomeText(about));
        await Promise.race([stop.asked, platform.failed]);
        setTimeout(() => {
          terminal.err(`The platform did not stop within ${stopTimeoutMs / 1000} s and is ended. Sandboxes run on.\n`);
          process.exit(1);
        }, stopTimeoutMs).unref();
        terminal.err('\nStopping. Sandboxes run on; the next start takes them over.\n');
      } catch (error) {
        if (!stop.signal.aborted) throw error;
        terminal.err('Interrupted.\n');
        return interruptedExitCode;
      }
      return 0;
    },
  };
}

/** Fails where the host lacks what no sandbox can do without, naming each lack with its remedy. */
async function requireAbleHost(settings: Settings): Promise<void> {
  const lacks = (await examineHost({ ...settings, criuDir, runscDir, ...builtPrograms })).filter(({ needed, status }) => needed && status === 'missing');
  if (lacks.length === 0) return;
  const lines = lacks.map(({ name, detail, remedy }) => `  ${name}: ${detail}${remedy === undefined ? '' : ` → ${remedy}`}`);
  throw new AtollError('unavailable', `Sandboxes can't run on this machine yet:\n${lines.join('\n')}`);
}

function aboutOf({ host, domain, dataDir }: Settings, { port, tlsPort, authorityFile, apiKey, building }: Platform): Welcome {
  const name = isWildcard(host) ? domain : host === '127.0.0.1' ? 'localhost' : host;
  const tls = tlsPort === null ? undefined : { url: `https://${name}:${tlsPort}`, authorityFile };
  return { url: `http://${name}:${port}`, tls, apiKey, apiKeyFile: apiKeyFile(dataDir), domain: `${domain}:${port}`, dataDir, building };
}

/** SIGINT, SIGTERM and SIGHUP ask for a clean stop. A second Ctrl-C is a person who will not wait; `down` may ask twice. */
function stopSignal(): { asked: Promise<void>; signal: AbortSignal } {
  const controller = new AbortController();
  const asked = Promise.withResolvers<void>();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      if (controller.signal.aborted && name === 'SIGINT') process.exit(1);
      controller.abort(new AtollError('canceled', 'The start was interrupted.'));
      asked.resolve();
    });
  }
  return { asked: asked.promise, signal: controller.signal };
}
