import type { BuildState } from './build.ts';

/** What makes a folder of the checkout a template that comes with the platform. Members are those of the REST API, but for `fromMachine` and `files`. */
export type ShippedDefinition = {
  fromTemplate?: string;
  /** The lowest layer is made of this machine's own packages. */
  fromMachine?: { packages: string; npm: string };
  cpuCount?: number;
  memoryMB?: number;
  /** What of the folder its COPY steps take. */
  files?: string[];
  steps?: { type: string; args: string[] }[];
  startCmd?: string;
  readyCmd?: string;
};

/** The part of the work on shipped templates that needs the machine: its packages, its cache, the checkout. */
export type ShippedProtocol = {
  /** Whether all these layers are on the node. */
  has(layers: string[]): Promise<boolean>;
  /** Changes with everything that decides about the template and that can be known beforehand. */
  key(name: string): Promise<string>;
  define(name: string): Promise<ShippedDefinition>;
  /**
   * Takes what an installation of this machine has made of the template before, null where there is nothing, after waiting for others
   * that make it. Until `end` no other installation makes it.
   */
  begin(name: string, key: string, signal?: AbortSignal): Promise<BuildState | null>;
  /** Ends what was begun; `made` is kept for other installations. */
  end(name: string, key: string, made: BuildState | null): Promise<void>;
  /** The files of its folder that its steps take, as an archive in base64. */
  files(name: string): Promise<string>;
  /** The digest of its lowest layer, made where it is not there. */
  bottom(name: string, signal?: AbortSignal): Promise<string>;
};
