import { createContext, use } from 'react';
import { roles } from '../../protocol/api/member.ts';
import type { Role } from '../../protocol/api/member.ts';
import type { Session } from '../../protocol/api/session.ts';

/** A team that can be looked at. */
export type TeamChoice = { teamID: string; name: string; slug: string; role?: Role };

/** Who is signed in, the teams to choose from, and the one that is looked at. */
export type Viewer = { session: Session; teams: TeamChoice[]; team: TeamChoice | null };

/** Holds who is signed in, for everything below the shell. */
export const ViewerContext = createContext<Viewer | null>(null);

/** Whoever is signed in. Only below the shell. */
export function useViewer(): Viewer {
  const viewer = use(ViewerContext);
  if (!viewer) throw new Error('nobody is signed in here');
  return viewer;
}

/** The team that is looked at. Only on pages of a team. */
export function useTeam(): TeamChoice {
  const { team } = useViewer();
  if (!team) throw new Error('no team is looked at here');
  return team;
}

/** Whether the viewer may in this team what takes `role`: the API decides, this shows it beforehand. */
export function useMay(role: Role): boolean {
  const { session, team } = useViewer();
  return session.operator || roles.indexOf(team?.role ?? 'viewer') >= roles.indexOf(role);
}
