import type { Log } from '../base/telemetry/log.ts';
import type { OutputBudget } from './journal/budget.ts';
import type { Journal } from './journal/journal.ts';
import type { Native } from './native.ts';
import type { OutOfMemoryWatch } from './process/process.ts';
import type { ProcessTable } from './process/process-table.ts';
import type { Spawner } from './process/spawner.ts';
import type { Settings, SettingsStore } from './settings.ts';
import type { StateFile } from './durable/state-file.ts';

/** Everything that the agent's routes use. */
export type Agent = {
  readonly log: Log;
  /** The program of `native/init.c`, for small work that it does beside its own. */
  readonly initPath: string;
  readonly native: Native;
  readonly spawner: Spawner;
  readonly state: StateFile;
  readonly store: SettingsStore;
  readonly processes: ProcessTable;
  readonly outOfMemory: OutOfMemoryWatch;
  readonly journal: Journal;
  readonly outputBudget: OutputBudget;
  /** The settings in force. Only for what is reached after the platform has called `/init`. */
  settings(): Settings;
};
