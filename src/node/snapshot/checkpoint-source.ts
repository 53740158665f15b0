/** A sandbox that runs, or is frozen. */
export type CheckpointSource = {
  /** Its first process, in the host's numbers. */
  pid: number;
  /** The slot that it is in. */
  slotName: string;
  /** Whose it is; absent: of nobody's that is known. */
  teamId?: string;
  /** Memory that it has now. */
  memoryBytes(): number;
  group: {
    /** Settles when every process is frozen. */
    freeze(): Promise<void>;
    /** Begins it, for processes that are stopped for another reason yet. */
    beginFreeze(): void;
    /** Settles when what was begun is done. Where one process is not frozen in time, none of the others goes on. */
    frozen(): Promise<void>;
    thaw(): void;
    /** All processes, in the host's numbers. */
    processes(): number[];
  };
  /** Its disk's image, and where that is mounted in the helper's namespace. */
  disk: string;
  diskMount: string;
  /** Mount points of its layers in the helper's namespace, lowest first. */
  layers: string[];
  /** Mount points of its volumes, as it sees them. */
  volumes: string[];
};
