/** An archive that a team has uploaded for a COPY step. */
export type UploadRef = {
  teamId: string;
  /** As the client names it: 64 hexadecimal digits. */
  hash: string;
};

/** Uploaded archives of a node, as control brings them there. */
export type UploadExchange = {
  /** Which of these are not here. Those that are count as used. */
  missing(uploads: UploadRef[]): Promise<UploadRef[]>;
  /** A descriptor to read an archive, the caller's from now on. Errors: `not_found`. */
  openRead(upload: UploadRef): Promise<{ sizeBytes: number; descriptor: number }>;
  /**
   * Begins an archive: the caller writes it to the descriptor, which is the caller's from now on. What is not ended
   * within an hour is dropped. Errors: `no_space`, `unavailable` (too many at a time).
   */
  openWrite(upload: UploadRef, sizeBytes: number): Promise<{ writeId: string; descriptor: number }>;
  /** Ends an archive of so many bytes. Errors: `unavailable` (not all of it has come), `not_found` (ended already). */
  keepWrite(writeId: string, sizeBytes: number): Promise<void>;
  /** Drops an archive that was begun. Errors: `not_found` (ended already), `no_space` where it failed for that. */
  dropWrite(writeId: string): Promise<void>;
};
