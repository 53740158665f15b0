import type { ByteSocket } from '../send-buffer.ts';

/**
 * Watches a client that has closed its sending side: whether it still reads shows in the bytes that its kernel takes.
 */
export class HalfCloseWatch {
  #timer: Timer | null = null;

  /** Calls `gone` when the socket has taken nothing for `graceMs`; from anew where it watches already. */
  begin(socket: Pick<ByteSocket, 'bytesWritten'>, graceMs: number, gone: () => void): void {
    let taken = socket.bytesWritten;
    this.end();
    this.#timer = setInterval(() => {
      const flows = socket.bytesWritten !== taken;
      taken = socket.bytesWritten;
      if (flows) return;
      this.end();
      gone();
    }, graceMs);
  }

  /** Stops watching. */
  end(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }
}
