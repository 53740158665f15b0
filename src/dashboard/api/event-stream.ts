import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { followed } from '../../base/followed.ts';
import type { ServerSent } from '../../base/server-sent.ts';
import type { EventSubject } from '../../protocol/api/event.ts';
import { useConnections } from './connections.ts';
import { ApiFailure, ask } from './client.ts';
import { gathered } from './gathered.ts';
import { isStale } from './stale.ts';

/** What is read again when something happened to a thing of this kind. */
const staleAfter: Record<EventSubject, string[]> = {
  sandbox: ['/v2/sandboxes', '/sandboxes', '/events', '/snapshots', '/nodes', '/templates'],
  build: ['/templates', '/v2/templates', '/events'],
  volume: ['/volumes', '/events'],
};

/** What is read again when other sandboxes than before are between two states. */
const staleInTransition = ['/v2/sandboxes', '/sandboxes'];

/** Follows the events of a team and makes pages read again what changed. Answers whether it hears anything now. */
export function useEventStream(team: string | undefined): boolean {
  const client = useQueryClient();
  const connections = useConnections();
  const [live, setLive] = useState(false);
  useEffect(() => {
    if (team === undefined) return;
    const stop = new AbortController();
    const renew = gathered(
      stale => client.invalidateQueries({ predicate: ({ queryKey }) => isStale(queryKey[0], stale) }),
      stop.signal,
    );
    let underWay = '[]';
    const onMessage = ({ event, data }: ServerSent) => {
      if (event === 'ready') return setLive(true);
      if (event === 'transitions') {
        if (data !== underWay) renew(staleInTransition);
        underWay = data;
        return;
      }
      const { subject } = JSON.parse(data) as { subject?: { kind: EventSubject } };
      if (subject) renew(staleAfter[subject.kind]);
    };
    // The frame asks who is signed in and finds nobody.
    const onSignedOut = () => void client.invalidateQueries({ queryKey: ['/session'] });
    void connections
      .hold({ isShown: () => true }, stop.signal)
      .then(() => follow(team, stop.signal, onMessage, setLive, onSignedOut));
    return () => stop.abort();
  }, [team, client, connections]);
  return live;
}

/** Follows the team's events until `signal` aborts. */
async function follow(
  team: string,
  signal: AbortSignal,
  onMessage: (message: ServerSent) => void,
  setLive: (live: boolean) => void,
  onSignedOut: () => void,
): Promise<void> {
  const open = (after: string | undefined) =>
    ask('/events/stream', { team, query: { after, transitions: true }, signal });
  const onFailure = (error: unknown) => {
    setLive(false);
    if (error instanceof ApiFailure && error.status === 401) onSignedOut();
  };
  for await (const message of followed({ open, signal, onFailure })) onMessage(message);
}
