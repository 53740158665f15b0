import type { StateFile } from '../durable/state-file.ts';
import type { OutputBudget } from '../journal/budget.ts';
import type { Journal } from '../journal/journal.ts';
import type { Native } from '../native.ts';
import type { Settings } from '../settings.ts';
import type { OutOfMemoryWatch } from './process.ts';
import type { ProcessTable } from './process-table.ts';
import type { Spawner } from './spawner.ts';

/** What starting processes needs. */
export type ProcessHost = {
  readonly native: Native;
  readonly spawner: Spawner;
  readonly state: StateFile;
  readonly processes: ProcessTable;
  readonly outOfMemory: OutOfMemoryWatch;
  readonly journal: Journal;
  readonly outputBudget: OutputBudget;
  /** The settings in force. Only for code that runs after the platform has called `/init`. */
  settings(): Settings;
};
