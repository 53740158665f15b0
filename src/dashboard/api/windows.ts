import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { isStale } from './stale.ts';

/** Between the windows of this browser: what a change made in one has made old in all. */
const channelName = 'atoll.changes';

/** Tells the other windows of this browser that answers of these paths are old. */
export function tellWindows(stale: readonly string[]): void {
  const channel = new BroadcastChannel(channelName);
  channel.postMessage(stale);
  channel.close();
}

/** Has this window ask again for what another one has changed, of which no event tells: keys, secrets, members. */
export function useOtherWindows(): void {
  const client = useQueryClient();
  useEffect(() => {
    const channel = new BroadcastChannel(channelName);
    channel.onmessage = ({ data }: MessageEvent<string[]>) =>
      void client.invalidateQueries({ predicate: ({ queryKey }) => isStale(queryKey[0], data) });
    return () => channel.close();
  }, [client]);
}
