import type { AgentInit } from '../protocol/agent.ts';
import type { StateFile } from './durable/state-file.ts';
import { trustVariablesFor } from './sandbox/trust-store.ts';

/** The sandbox's settings from the platform. */
export type Settings = {
  envVars: Record<string, string>;
  /** Null: every caller is let in. */
  accessToken: string | null;
  defaultUser: string;
  defaultWorkdir: string;
  hostname: string;
  /** The newest timestamp of an init, epoch milliseconds; 0: none yet. */
  timestampMs: number;
  /** Limits of the sandbox where no cgroup tells them; 0: unknown. */
  memoryBytes: number;
  cpuCount: number;
  /** Puts the output of processes into the log. */
  logOutput: boolean;
};

/** Settings as long as the sandbox lives: they survive an agent that was killed. */
export type SettingsStore = {
  /** Undefined until the platform has called `/init`: till then nobody is let in. */
  readonly current: Settings | undefined;
  /** Takes an init and saves the result. False: it is older than the newest one and changes nothing. */
  take(init: AgentInit): boolean;
};

const initial: Settings = {
  envVars: {},
  accessToken: null,
  defaultUser: 'root',
  defaultWorkdir: '',
  hostname: '',
  timestampMs: 0,
  memoryBytes: 0,
  cpuCount: 0,
  logOutput: true,
};

/**
 * The settings of the sandbox, beginning with those in the state file: an agent that is started again goes on with
 * them.
 */
export function openSettings(state: StateFile): SettingsStore {
  // Only `take` below ever saved anything there.
  let current = state.readSettings() as Settings | undefined;
  return {
    get current() {
      return current;
    },
    take(init) {
      const before = current ?? initial;
      const timestampMs = init.timestamp === undefined ? before.timestampMs : Date.parse(init.timestamp);
      if (timestampMs < before.timestampMs) return false;
      const next: Settings = {
        envVars: { ...trustVariablesFor(init.caBundle), ...(init.envVars ?? before.envVars) },
        accessToken: init.accessToken === undefined ? before.accessToken : init.accessToken || null,
        defaultUser: init.defaultUser || before.defaultUser,
        defaultWorkdir: init.defaultWorkdir ?? before.defaultWorkdir,
        hostname: init.hostname ?? before.hostname,
        timestampMs,
        memoryBytes: init.memoryBytes ?? before.memoryBytes,
        cpuCount: init.cpuCount ?? before.cpuCount,
        logOutput: init.logOutput ?? before.logOutput,
      };
      state.saveSettings(next);
      current = next;
      // Last: with the one before the platform can do all of this again.
      if (init.controlToken !== undefined) state.replaceControlToken(init.controlToken);
      return true;
    },
  };
}
