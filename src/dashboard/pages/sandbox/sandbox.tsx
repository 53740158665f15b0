import { Link, Outlet, useParams } from '@tanstack/react-router';
import { createContext, use } from 'react';
import type { LifecycleEvent } from '../../../protocol/api/event.ts';
import type { SandboxDetail } from '../../../protocol/api/sandbox.ts';
import { ApiFailure } from '../../api/client.ts';
import { useRead } from '../../api/hooks.ts';
import { StateBadge } from '../sandboxes/state-badge.tsx';
import { Badge, Copy, Loading, Problem } from '../../parts/bits.tsx';
import { Page } from '../../parts/page.tsx';
import { TimeLeft } from '../sandboxes/time-left.tsx';
import { killOf, reasons } from '../sandboxes/ended.tsx';
import { SandboxActions } from './actions.tsx';

/** A sandbox as its pages know it: `detail` is null once it has ended. */
type Known = { sandboxId: string; detail: SandboxDetail | null; events: LifecycleEvent[] };

/** Events of a sandbox that its pages read, the newest first. */
export const eventsMax = 100;

const KnownContext = createContext<Known | null>(null);

/** The selected sandbox. Only below its page. */
export function useSandbox(): Known {
  const known = use(KnownContext);
  if (!known) throw new Error('no sandbox is looked at here');
  return known;
}

const tabs = [
  { to: '/sandboxes/$sandboxId', name: 'Overview' },
  { to: '/sandboxes/$sandboxId/terminal', name: 'Terminal' },
  { to: '/sandboxes/$sandboxId/files', name: 'Files' },
  { to: '/sandboxes/$sandboxId/logs', name: 'Logs' },
  { to: '/sandboxes/$sandboxId/metrics', name: 'Metrics' },
  { to: '/sandboxes/$sandboxId/network', name: 'Network' },
] as const;

/** The frame of a sandbox's pages: its state, what can be done, its tabs. */
export function SandboxPage() {
  const { sandboxId = '' } = useParams({ strict: false });
  const id = encodeURIComponent(sandboxId);
  const detail = useRead<SandboxDetail>(`/sandboxes/${id}`);
  const events = useRead<LifecycleEvent[]>(`/events/sandboxes/${id}`, { query: { limit: eventsMax } });
  const isGone = detail.error instanceof ApiFailure && detail.error.status === 404;
  const failed = (isGone ? [events] : [detail, events]).find(({ error }) => error);
  const problem = failed?.error && <Problem error={failed.error} onRetry={() => void failed.refetch()} />;
  if ((!detail.data && !isGone) || !events.data) return <Page title={sandboxId}>{problem ?? <Loading />}</Page>;
  if (isGone && events.data.length === 0)
    return (
      <Page title={sandboxId}>
        <Problem error={new Error(`This team has no sandbox ${sandboxId}, and had none in the last seven days.`)} />
      </Page>
    );
  const known = { sandboxId, detail: isGone ? null : (detail.data ?? null), events: events.data };
  return (
    <KnownContext value={known}>
      <Page
        title={known.detail?.alias ?? 'Sandbox'}
        about={<StateLine known={known} />}
        actions={known.detail && <SandboxActions of={known.detail} />}
      >
        {/* Beside what is open, and not in its place: terminals and texts go on with what is known. */}
        {problem}
        <nav className="tabs" aria-label="Sandbox" ref={showCurrent}>
          {tabs.map(({ to, name }) => (
            <Link key={to} to={to} params={{ sandboxId }} activeOptions={{ exact: true, includeSearch: false }}>
              {name}
            </Link>
          ))}
        </nav>
        <Outlet />
      </Page>
    </KnownContext>
  );
}

/** On a narrow screen, the tab of the page may be out of sight. */
function showCurrent(nav: HTMLElement | null): void {
  nav?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
}

function StateLine({ known: { sandboxId, detail, events } }: { known: Known }) {
  const killed = events.find(({ type }) => type === 'sandbox.lifecycle.killed');
  const reason = killed ? (reasons[killOf(killed).kill_reason ?? '']?.text ?? 'ended') : 'ended';
  return (
    <div className="row" style={{ marginTop: 4 }}>
      {detail ? <StateBadge of={detail} /> : <Badge tone="idle">ended: {reason}</Badge>}
      <Copy text={sandboxId} />
      {detail && <TimeLeft of={detail} />}
    </div>
  );
}
