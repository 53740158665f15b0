/** What `atoll doctor` found out about one ability of the host. */
export type HostFinding = {
  /** Short name, stable: programs select by it. */
  name: string;
  /** `ok`: tried, and it works. `limited`: Atoll runs, with less. `missing`: it does not work. */
  status: 'ok' | 'limited' | 'missing';
  /** What was seen. */
  detail: string;
  /** True where no sandbox can run without it. */
  needed: boolean;
  /** What a person can do about it. Absent where nothing is to be done. */
  remedy?: string;
};
