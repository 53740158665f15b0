import type { ByteSocket } from '../send-buffer.ts';

/** Watches a client that has closed its sending side. The bytes that its kernel takes show whether it still reads. */
export class HalfCloseWatch {
  #timer: Timer | null = null;

  /** Calls `gone` once the socket has taken nothing for `graceMs`. Starts over if it is already watching. */
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
