/** An archive that a team has uploaded for a COPY step. */
export type UploadRef = {
  teamId: string;
  /** As the client names it: 64 hexadecimal digits. */
  hash: string;
};

/** Uploaded archives of a node, as control brings them there. */
export type UploadExchange = {
  /** Says which of these are not here. The others count as used now. */
  missing(uploads: UploadRef[]): Promise<UploadRef[]>;
  /** A descriptor to read an archive; the caller owns it. Errors: `not_found`. */
  openRead(upload: UploadRef): Promise<{ sizeBytes: number; descriptor: number }>;
  /**
   * Begins an archive: the caller writes it to the descriptor, which the caller owns. An archive that is not ended
   * within an hour is dropped. Errors: `no_space`, `unavailable` (too many at a time).
   */
  openWrite(upload: UploadRef, sizeBytes: number): Promise<{ writeId: string; descriptor: number }>;
  /**
   * Ends an archive of `sizeBytes` bytes. Errors: `unavailable` (not all bytes have come), `not_found` (ended already).
   */
  keepWrite(writeId: string, sizeBytes: number): Promise<void>;
  /**
   * Drops an archive that was begun. Errors: `not_found` (ended already), `no_space` where writing failed for that
   * reason.
   */
  dropWrite(writeId: string): Promise<void>;
};
