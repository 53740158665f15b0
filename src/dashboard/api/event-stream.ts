import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { EventSubject } from '../../protocol/api/event.ts';
import { ApiFailure, ask } from './client.ts';
import { gathered } from './gathered.ts';
import { isStale } from './hooks.ts';
import { parseEvents } from './server-sent.ts';

/** What is asked again when something happened to such a thing. */
const staleAfter: Record<EventSubject, string[]> = {
  sandbox: ['/v2/sandboxes', '/sandboxes', '/events', '/snapshots', '/nodes', '/templates'],
  build: ['/templates', '/v2/templates', '/events'],
  volume: ['/volumes', '/events'],
};

const retryMs = 2_000;

/** Follows what happens in a team and has pages ask again for what changed. Answers whether it hears anything now. */
export function useEventStream(team: string | undefined): boolean {
  const client = useQueryClient();
  const [live, setLive] = useState(false);
  useEffect(() => {
    if (team === undefined) return;
    const stop = new AbortController();
    const renew = gathered(
      stale => client.invalidateQueries({ predicate: ({ queryKey }) => isStale(queryKey[0], stale) }),
      stop.signal,
    );
    const onEvent = (data: string) => {
      const { subject } = JSON.parse(data) as { subject?: { kind: EventSubject } };
      if (subject) renew(staleAfter[subject.kind]);
    };
    // The frame asks who is signed in and finds nobody.
    const onSignedOut = () => void client.invalidateQueries({ queryKey: ['/session'] });
    void follow(team, stop.signal, onEvent, setLive, onSignedOut);
    return () => stop.abort();
  }, [team, client]);
  return live;
}

/** Reads one stream after the other until `signal`, each from where the last one ended. */
async function follow(
  team: string,
  signal: AbortSignal,
  onEvent: (data: string) => void,
  setLive: (live: boolean) => void,
  onSignedOut: () => void,
): Promise<void> {
  let after: string | undefined;
  while (!signal.aborted) {
    try {
      const response = await ask('/events/stream', { team, query: { after }, signal });
      for await (const { event, id, data } of parseEvents(response.body)) {
        after = id ?? after;
        if (event === 'ready') setLive(true);
        else onEvent(data);
      }
    } catch (error) {
      if (signal.aborted) return;
      setLive(false);
      if (error instanceof ApiFailure && error.status === 401) onSignedOut();
      await new Promise(resolve => setTimeout(resolve, retryMs));
    }
  }
}
