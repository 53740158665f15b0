/** The receiver of a channel. `file`: an open file that came with the message and is the receiver's now. */
export type Listener = {
  message(text: string, file?: number): void;
  /** Once, when nothing comes any more. */
  closed(): void;
};

/** A way between two processes: whole messages, in their order, with an open file where one is passed. */
export type Channel = {
  /** Sends a message. The file belongs to the channel from now on. Nothing happens on a channel that is closed. */
  send(text: string, file?: number): void;
  listen(listener: Listener): void;
  close(): void;
};
