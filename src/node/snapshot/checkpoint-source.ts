/** A sandbox that runs, or is frozen. */
export type CheckpointSource = {
  /** Its first process, in the host's numbers. */
  pid: number;
  /** The slot that it is in. */
  slotName: string;
  /** The team that it belongs to; absent: none is known. */
  teamId?: string;
  /** Bytes of memory that it uses now. */
  memoryBytes(): number;
  group: {
    /** Settles when every process is frozen. */
    freeze(): Promise<void>;
    /** Begins to freeze, for processes that are still stopped for another reason. */
    beginFreeze(): void;
    /**
     * Settles when the freeze that was begun is complete. If one process is not frozen in time, none of the others
     * runs on.
     */
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
  /** Mount points of its volumes, as the sandbox sees them. */
  volumes: string[];
};
