import { useEffect, useState } from 'react';
import { followed } from '../../base/followed.ts';
import { useConnections } from './connections.ts';
import { ask } from './client.ts';
import type { Query } from './client.ts';
import { useTeam } from './session.tsx';

/** Entries shown at a time; older ones are dropped. */
export const shownMax = 2_000;
/** Entries that arrive within this time are shown together, ms. */
const gatherMs = 60;

/** A log that is being followed. `entries`: null until anything of it is known. */
export type LogStream<T> = {
  entries: T[] | null;
  /** How many entries preceded those shown. */
  dropped: number;
  isLive: boolean;
  /** What the stream said at its end; null while it goes on. */
  end: unknown;
  error: Error | null;
};

/** Why nothing comes yet. */
const waitsText =
  'This waits for another one to end: over plain HTTP a browser follows few things at a time. Over TLS it need not.';

const nothing = { entries: null, dropped: 0, isLive: false, end: null, error: null };

/** An entry as a stream tells it, with its place in the log. */
type Placed<T> = T & { place: string };

/**
 * Follows a log of the team: the existing entries, then new ones, over as many connections as it takes. If there are
 * more entries than are shown, `keep` says which stay; with `oldest`, no more than those are read.
 */
export function useLogStream<T>(
  path: string,
  query: Query,
  keep: 'newest' | 'oldest' = 'newest',
): LogStream<Placed<T>> {
  const { teamID } = useTeam();
  const connections = useConnections();
  const [log, setLog] = useState<LogStream<Placed<T>>>(nothing);
  const asked = JSON.stringify(query);
  useEffect(() => {
    const stop = new AbortController();
    const waiting: Placed<T>[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    setLog(nothing);
    const show = (changes: Partial<LogStream<Placed<T>>>) => setLog(before => ({ ...before, ...changes }));
    const flush = () => {
      timer = undefined;
      const fresh = waiting.splice(0);
      setLog(before => {
        const all = [...(before.entries ?? []), ...fresh];
        if (keep === 'oldest' && all.length >= shownMax) stop.abort();
        const entries = keep === 'oldest' ? all.slice(0, shownMax) : all.slice(-shownMax);
        const dropped = keep === 'oldest' ? 0 : before.dropped + all.length - entries.length;
        return { ...before, entries, dropped, ...(stop.signal.aborted && { isLive: false }) };
      });
    };
    const read = async () => {
      const onWait = () => show({ error: new Error(waitsText) });
      await connections.hold({ isShown: () => true }, stop.signal, onWait);
      const open = (after: string | undefined) =>
        ask(path, {
          team: teamID,
          query: { ...(JSON.parse(asked) as Query), ...(after !== undefined && { after, tail: undefined }) },
          signal: stop.signal,
        });
      const onFailure = (error: unknown) => show({ isLive: false, error: error as Error });
      for await (const { event, id = '', data } of followed({ open, signal: stop.signal, onFailure })) {
        if (event === 'ready') show({ isLive: true, error: null });
        else if (event === 'end') show({ isLive: false, end: JSON.parse(data) });
        else waiting.push({ ...(JSON.parse(data) as T), place: id });
        timer ??= setTimeout(flush, gatherMs);
      }
    };
    void read();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [path, teamID, asked, keep, connections]);
  return log;
}
