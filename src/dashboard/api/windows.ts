import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { isStale } from './stale.ts';

/** Between the windows of this browser: tells which answers a change in one window has made stale in all. */
const channelName = 'atoll.changes';

/** Tells the other windows of this browser that answers of these paths are stale. */
export function tellWindows(stale: readonly string[]): void {
  const channel = new BroadcastChannel(channelName);
  channel.postMessage(stale);
  channel.close();
}

/** Makes this window read again what another one has changed and no event reports: keys, secrets, members. */
export function useOtherWindows(): void {
  const client = useQueryClient();
  useEffect(() => {
    const channel = new BroadcastChannel(channelName);
    channel.onmessage = ({ data }: MessageEvent<string[]>) =>
      void client.invalidateQueries({ predicate: ({ queryKey }) => isStale(queryKey[0], data) });
    return () => channel.close();
  }, [client]);
}
