/** One ability of the host, as `atoll doctor` found it. */
export type HostFinding = {
  /** Short name, stable: programs select by it. */
  name: string;
  /** `ok`: tried, and it works. `limited`: Atoll runs, with less. `missing`: it does not work. */
  status: 'ok' | 'limited' | 'missing';
  /** The observation. */
  detail: string;
  /** True where no sandbox can run without it. */
  needed: boolean;
  /** A remedy for the operator. Absent where none is needed. */
  remedy?: string;
};
