/** The receiver of a channel. `file`: an open file that came with the message; the receiver owns it. */
export type Listener = {
  message(text: string, file?: number): void;
  /** Called once, when nothing more will come. */
  closed(): void;
};

/** A connection between two processes: whole messages in order, each with an open file where one is passed. */
export type Channel = {
  /** Sends a message. The channel owns the file from now on. Does nothing on a closed channel. */
  send(text: string, file?: number): void;
  listen(listener: Listener): void;
  close(): void;
};
