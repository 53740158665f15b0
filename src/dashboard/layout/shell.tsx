import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, Outlet, useMatchRoute, useNavigate, useSearch } from '@tanstack/react-router';
import { Clock, CodeXml, Globe, LogOut, Menu, Monitor, Moon, Search, Sun } from 'lucide-react';
import { useEffect, useState } from 'react';
import type { Session } from '../../protocol/api/session.ts';
import { ApiFailure, ask, askJson } from '../api/client.ts';
import { useEventStream } from '../api/event-stream.ts';
import { ViewerContext } from '../api/session.tsx';
import type { TeamChoice, Viewer } from '../api/session.tsx';
import { useOtherWindows } from '../api/windows.ts';
import { Loading, Problem } from '../parts/bits.tsx';
import { Uploads } from '../files/uploads.tsx';
import { CallsNote, ShownCalls, useCalls } from '../code/calls.tsx';
import { Page } from '../parts/page.tsx';
import { Proofs } from '../parts/proof.tsx';
import { forgetReturn, keepReturn } from '../parts/return-path.ts';
import { useZoneChoice } from '../parts/zone.tsx';
import { destinations } from './destinations.ts';
import type { Destination } from './destinations.ts';
import { Logo } from './logo.tsx';
import { Palette } from './palette.tsx';
import { Shortcuts } from './shortcuts.tsx';
import { NoTeam } from './no-team.tsx';
import { nextTheme, rememberedTheme, showTheme } from './theme.ts';

/** Finds out who is signed in and shows the frame of all pages, or a way to sign in. */
export function Shell() {
  const session = useQuery({ queryKey: ['/session'], queryFn: () => askJson<Session>('/session'), staleTime: 60_000 });
  const isOperator = session.data?.operator ?? false;
  const all = useQuery({
    queryKey: ['/admin/teams'],
    queryFn: () => askJson<TeamChoice[]>('/admin/teams'),
    enabled: isOperator,
  });
  const navigate = useNavigate();
  const { team: wanted } = useSearch({ strict: false });
  const isOut = session.error instanceof ApiFailure && session.error.status === 401;
  useEffect(() => {
    if (!isOut) return;
    keepReturn();
    void navigate({ to: '/signin', replace: true });
  }, [isOut, navigate]);
  if (isOut) return null;
  if (!session.data || (isOperator && !all.data)) {
    // A failed refresh is no reason to take away what is open: the page goes on with what is known.
    const failed = session.data ? all : session;
    return failed.error ? (
      <Page title="Atoll">
        <Problem error={failed.error} onRetry={() => void failed.refetch()} />
      </Page>
    ) : (
      <Loading />
    );
  }
  const teams = all.data ?? session.data.teams;
  const team = teams.find(({ slug }) => slug === wanted) ?? teams[0] ?? null;
  return <Frame viewer={{ session: session.data, teams, team }} />;
}

function Frame({ viewer }: { viewer: Viewer }) {
  const live = useEventStream(viewer.team?.teamID);
  useOtherWindows();
  const [open, setOpen] = useState(false);
  const [seeking, setSeeking] = useState(false);
  const { team, session } = viewer;
  const isOn = useMatchRoute();
  const isPersonal = [...destinations.account, ...destinations.operator].some(({ to }) => isOn({ to, fuzzy: true }));
  return (
    <ViewerContext value={viewer}>
      <ShownCalls>
        <a className="sr" href="#content">
          Skip to the content
        </a>
        <div className="shell">
          <nav className="rail" aria-label="Pages" data-open={open || undefined} onClick={() => setOpen(false)}>
            <div className="rail-top">
              <Link to="/sandboxes" className="brand">
                <Logo /> Atoll
              </Link>
              <button
                type="button"
                className="button bare menu-button"
                aria-label="Menu"
                aria-expanded={open}
                onClick={event => {
                  event.stopPropagation();
                  setOpen(!open);
                }}
              >
                <Menu size={18} />
              </button>
            </div>
            <TeamSwitch viewer={viewer} />
            {team && <Group name="Team" items={destinations.team} />}
            <Group name="You" items={destinations.account} />
            {session.operator && <Group name="Operator" items={destinations.operator} />}
            <Foot live={live} viewer={viewer} onSeek={() => setSeeking(true)} />
          </nav>
          <div className="beside-rail">
            <CallsNote />
            <Proofs>
              <Uploads>{team || isPersonal ? <Outlet /> : <NoTeam />}</Uploads>
            </Proofs>
          </div>
        </div>
        <Shortcuts />
        <Palette open={seeking} onOpen={() => setSeeking(true)} onClose={() => setSeeking(false)} />
      </ShownCalls>
    </ViewerContext>
  );
}

function Group({ name, items }: { name: string; items: Destination[] }) {
  return (
    <div className="nav">
      <h2>{name}</h2>
      {items.map(({ to, name, icon: Icon }) => (
        <Link key={to} to={to} activeOptions={{ exact: to === '/operator', includeSearch: false }}>
          <Icon size={16} aria-hidden /> {name}
        </Link>
      ))}
    </div>
  );
}

function TeamSwitch({ viewer: { team, teams } }: { viewer: Viewer }) {
  const navigate = useNavigate();
  if (!team) return <p className="muted small">You are in no team yet.</p>;
  if (teams.length === 1)
    return (
      <div className="cut muted small" style={{ padding: '0 8px' }}>
        Team {team.name}
      </div>
    );
  return (
    <select
      aria-label="Team"
      value={team.slug}
      onClick={event => event.stopPropagation()}
      onChange={event => void navigate({ to: '/sandboxes', search: { team: event.target.value } })}
    >
      {teams.map(({ slug, name }) => (
        <option key={slug} value={slug}>
          {name}
        </option>
      ))}
    </select>
  );
}

function Foot({ live, viewer: { session }, onSeek }: { live: boolean; viewer: Viewer; onSeek: () => void }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const { zone, choose } = useZoneChoice();
  const [theme, setTheme] = useState(rememberedTheme);
  const ThemeIcon = { system: Monitor, light: Sun, dark: Moon }[theme];
  const signOut = async () => {
    await ask('/session', { method: 'DELETE' });
    client.clear();
    await navigate({ to: '/signin' });
    forgetReturn();
  };
  return (
    <div className="rail-foot" onClick={event => event.stopPropagation()}>
      <button type="button" className="button" style={{ justifyContent: 'flex-start' }} onClick={onSeek}>
        <Search size={14} /> Go to…{' '}
        <span className="muted small" style={{ marginLeft: 'auto' }}>
          Ctrl K
        </span>
      </button>
      <div className="row" style={{ gap: 2 }}>
        <span
          className="who cut small muted"
          title={live ? 'Changes show at once' : 'Connecting to the stream of events'}
        >
          {session.user?.name ?? 'Operator'} · {live ? 'live' : 'not live'}
        </span>
        <CodeButton />
        <button
          type="button"
          className="button bare"
          aria-label={`Times: ${zone === 'utc' ? 'universal' : 'local'}`}
          title={`Times: ${zone === 'utc' ? 'universal (UTC)' : 'of this machine'}`}
          onClick={() => choose(zone === 'utc' ? 'local' : 'utc')}
        >
          {zone === 'utc' ? <Globe size={15} /> : <Clock size={15} />}
        </button>
        <button
          type="button"
          className="button bare"
          aria-label={`Theme: ${theme}`}
          title={`Theme: ${theme}`}
          onClick={() => {
            const next = nextTheme(theme);
            showTheme(next);
            setTheme(next);
          }}
        >
          <ThemeIcon size={15} />
        </button>
        <button
          type="button"
          className="button bare"
          aria-label="Sign out"
          title="Sign out"
          onClick={() => void signOut()}
        >
          <LogOut size={15} />
        </button>
      </div>
    </div>
  );
}

function CodeButton() {
  const { isShowing, toggle } = useCalls();
  return (
    <button
      type="button"
      className="button bare"
      aria-pressed={isShowing}
      aria-label="Show the code of actions"
      title="Show the code of actions instead of doing them (c)"
      onClick={toggle}
    >
      <CodeXml size={15} />
    </button>
  );
}
