import type { AgentInit } from '../protocol/agent.ts';
import type { StateFile } from './durable/state-file.ts';
import { trustVariablesFor } from './sandbox/trust-store.ts';

/** The sandbox's settings from the platform. */
export type Settings = {
  envVars: Record<string, string>;
  /** Null: every caller is admitted. */
  accessToken: string | null;
  defaultUser: string;
  defaultWorkdir: string;
  hostname: string;
  /** The newest timestamp of an init, epoch milliseconds; 0: none yet. */
  timestampMs: number;
  /** Limits of the sandbox, for when no cgroup tells them; 0: unknown. */
  memoryBytes: number;
  cpuCount: number;
  /** Processes' output goes into the log. */
  logOutput: boolean;
};

/** Settings that live as long as the sandbox: they survive a killed agent. */
export type SettingsStore = {
  /** Undefined until the platform has called `/init`: until then nobody is admitted. */
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

/** The settings of the sandbox, starting from those in the state file: a restarted agent continues with them. */
export function openSettings(state: StateFile): SettingsStore {
  // Only `take` below saves anything there.
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
      // Last: with the previous token, the platform can repeat all of this.
      if (init.controlToken !== undefined) state.replaceControlToken(init.controlToken);
      return true;
    },
  };
}
