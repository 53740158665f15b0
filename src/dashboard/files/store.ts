import type { FileChange } from '../code/sdk-code.ts';

/** An entry of a folder. `changedAt` as in the API. */
export type Entry = {
  name: string;
  path: string;
  isFolder: boolean;
  bytes: number;
  changedAt: string | undefined;
  owner: string;
  mode: string;
};

/** A found line; lines count from 1. */
export type Hit = { path: string; line: number; text: string };
/** The found lines; `isMore`: there are more than reported; `isTimedOut`: not all files were searched. */
export type Hits = { hits: Hit[]; isMore: boolean; isTimedOut: boolean };

/** Files that can be viewed and changed: those of a sandbox or a volume. Every call may throw `ApiFailure`. */
export type FileStore = {
  /** Identifies it in what pages cache. */
  key: string;
  /** The folder shown first. */
  home: string;
  list(path: string): Promise<Entry[]>;
  stat(path: string): Promise<Entry>;
  read(path: string): Promise<Response>;
  /** A line of code that reads a file with the SDK. */
  codeFor: (path: string) => string;
  /** Programs that make a change, by language. */
  codeOf: (change: FileChange) => Record<string, string>;
  /** Writes a whole file, creating missing folders on its way. */
  write(path: string, content: Blob, signal?: AbortSignal): Promise<unknown>;
  makeFolder(path: string): Promise<unknown>;
  remove(path: string): Promise<unknown>;
  /** Absent if nothing can be renamed. */
  rename?: (from: string, to: string) => Promise<unknown>;
  /** Sets who may read, write and run it: `mode` as an octal number. Absent if files have no modes. */
  changeMode?: (path: string, mode: string) => Promise<unknown>;
  /** A whole folder, as a compressed tar. Absent if that is not available. */
  archive?: (path: string) => Promise<Blob>;
  /**
   * The lines in all files of a folder that contain a text, until `signal` aborts. Absent if nothing can search them.
   */
  find?: (path: string, text: string, signal: AbortSignal) => Promise<Hits>;
  /** Calls `onChange` when something in a folder changes, until `signal` aborts. Absent if nothing reports changes. */
  watch?: (path: string, onChange: () => void, signal: AbortSignal) => Promise<void>;
};
