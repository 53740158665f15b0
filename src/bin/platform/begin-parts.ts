import { AtollError } from '../../base/error.ts';
import type { Log } from '../../base/telemetry/log.ts';
import type { PartName, RestartReason } from '../../supervisor/part-process.ts';
import { type Part, startPart } from '../../supervisor/part.ts';
import type { BeginPart } from './platform-parts.ts';

/** Seconds that a process's event loop may stand still. Disks and mounts can block the node for longer. */
const stallSeconds = { node: 30, api: 10, edge: 10, gate: 10 } as const;

/** A part that calls another one stops before it. */
const stopOrder = ['edge', 'api', 'gate', 'node'] as const;

/** How to begin each part: it ends with the platform, and common settings fill in what it does not specify. */
export function beginWith(
  started: AsyncDisposableStack,
  platform: {
    log: Log;
    onPhase(phase: string): void;
    onRestart(name: PartName, reason: RestartReason): void;
    onGivenUp(error: AtollError): void;
  },
): BeginPart {
  const begun = new Map<PartName, Part<unknown>>();
  started.defer(async () => {
    for (const name of stopOrder) await begun.get(name)?.stop();
  });
  return own => {
    const part = startPart({
      stallLooksMax: stallSeconds[own.name],
      log: platform.log,
      onPhase: platform.onPhase,
      onAsk: async what => {
        throw new AtollError('unimplemented', `nobody may ask for ${what}`);
      },
      readAbout: () => undefined as never,
      onReady() {},
      onRestart: reason => platform.onRestart(own.name, reason),
      onGivenUp: platform.onGivenUp,
      ...own,
    });
    begun.set(own.name, part);
    return part;
  };
}
