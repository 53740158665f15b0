import { closeSync } from 'node:fs';
import type { Channel, Listener } from '../../../src/wire/channel.ts';

/** A channel within one process. Text and open files cross it, as between two processes. */
export function memoryChannels(): [Channel, Channel] {
  const left = side();
  const right = side();
  return [left.channel(right), right.channel(left)];
}

type Side = { channel(other: Side): Channel; take(text: string, file?: number): void; end(): void };

function side(): Side {
  let listener: Listener | undefined;
  let waiting: [string, number | undefined][] = [];
  let open = true;
  const end = () => {
    if (!open) return;
    open = false;
    for (const [, file] of waiting) if (file !== undefined) closeSync(file);
    queueMicrotask(() => listener?.closed());
  };
  return {
    end,
    take(text, file) {
      if (!open) {
        if (file !== undefined) closeSync(file);
        return;
      }
      if (!listener) return void waiting.push([text, file]);
      // Not within the call that sent it, as between two processes.
      const heard = listener;
      queueMicrotask(() => heard.message(text, file));
    },
    channel: other => ({
      send: (text, file) => {
        if (open) return other.take(text, file);
        if (file !== undefined) closeSync(file);
      },
      listen(heard) {
        listener = heard;
        const early = waiting;
        waiting = [];
        for (const [text, file] of early) queueMicrotask(() => heard.message(text, file));
      },
      close() {
        end();
        other.end();
      },
    }),
  };
}
