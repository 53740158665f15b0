import type { BuildState } from './build.ts';

/**
 * The definition in a folder of a shipped template. Its members are those of the REST API, except `fromMachine` and
 * `files`.
 */
export type ShippedDefinition = {
  fromTemplate?: string;
  /** Builds the lowest layer from this machine's own packages. */
  fromMachine?: { packages: string; npm: string };
  cpuCount?: number;
  memoryMB?: number;
  /** Files of the folder that its COPY steps use. */
  files?: string[];
  steps?: { type: string; args: string[] }[];
  startCmd?: string;
  readyCmd?: string;
};

/** The part of the work on shipped templates that needs the machine: its packages, its cache, the checkout. */
export type ShippedProtocol = {
  /** Says whether all these layers are on the node. */
  has(layers: string[]): Promise<boolean>;
  /** A key that changes with everything that decides about the template and is known beforehand. */
  key(name: string): Promise<string>;
  define(name: string): Promise<ShippedDefinition>;
  /**
   * Takes what another installation of this machine made of the template, or null; waits for installations that are
   * making it. Until `end` no other installation makes it.
   */
  begin(name: string, key: string, signal?: AbortSignal): Promise<BuildState | null>;
  /** Ends a `begin`; keeps `made` for other installations. */
  end(name: string, key: string, made: BuildState | null): Promise<void>;
  /** The files of its folder that its steps use, as an archive in base64. */
  files(name: string): Promise<string>;
  /** The digest of its lowest layer, which is made if it is missing. */
  baseRootfs(name: string, signal?: AbortSignal): Promise<string>;
};
