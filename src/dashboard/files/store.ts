import type { FileChange } from '../code/sdk-code.ts';

/** Something in a folder. `changedAt` as the API has it. */
export type Entry = {
  name: string;
  path: string;
  isFolder: boolean;
  bytes: number;
  changedAt: string | undefined;
  owner: string;
  mode: string;
};

/** A line that was found, from 1. */
export type Hit = { path: string; line: number; text: string };
/** What was found; `isMore`: there is more than is told; `isTimedOut`: not all files were looked at. */
export type Hits = { hits: Hit[]; isMore: boolean; isTimedOut: boolean };

/** Files that can be looked at and changed: a sandbox's or a volume's. Everything throws `ApiFailure`. */
export type FileStore = {
  /** Names it among everything that pages keep. */
  key: string;
  /** What is shown first. */
  home: string;
  list(path: string): Promise<Entry[]>;
  stat(path: string): Promise<Entry>;
  read(path: string): Promise<Response>;
  /** A line of a program that reads a file, by the SDK. */
  codeFor: (path: string) => string;
  /** Programs that make a change, by language. */
  codeOf: (change: FileChange) => Record<string, string>;
  /** Writes a file whole; folders on its way are made. */
  write(path: string, content: Blob, signal?: AbortSignal): Promise<unknown>;
  makeFolder(path: string): Promise<unknown>;
  remove(path: string): Promise<unknown>;
  /** Absent where nothing can be renamed. */
  rename?: (from: string, to: string) => Promise<unknown>;
  /** Sets who may read, write and run it: `mode` as an octal number. Absent where files have no modes. */
  changeMode?: (path: string, mode: string) => Promise<unknown>;
  /** A folder whole, as a compressed tar. Absent where none can be had. */
  archive?: (path: string) => Promise<Blob>;
  /** The lines of all files of a folder that have a text, until `signal`. Absent where nothing can look for them. */
  find?: (path: string, text: string, signal: AbortSignal) => Promise<Hits>;
  /** Calls `onChange` when something in a folder changes, until `signal`. Absent where nothing tells. */
  watch?: (path: string, onChange: () => void, signal: AbortSignal) => Promise<void>;
};
