import type { Log } from '../base/telemetry/log.ts';
import type { AfterAnswer } from './after-answer.ts';
import type { ProcessHost } from './process/process-host.ts';
import type { SettingsStore } from './settings.ts';

/** Everything that the agent's routes use. Each route names the members that it takes. */
export type Agent = ProcessHost & {
  readonly log: Log;
  /** The program of `native/init.c`, which also does small jobs besides its own. */
  readonly initPath: string;
  readonly store: SettingsStore;
  readonly afterAnswer: AfterAnswer;
};
