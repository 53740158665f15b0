import { createContext, use } from 'react';
import { roles } from '../../protocol/api/member.ts';
import type { Role } from '../../protocol/api/member.ts';
import type { Session } from '../../protocol/api/session.ts';

/** A team that can be selected. */
export type TeamChoice = { teamID: string; name: string; slug: string; role?: Role };

/** Who is signed in, the teams to choose from, and the selected one. */
export type Viewer = { session: Session; teams: TeamChoice[]; team: TeamChoice | null };

/** Provides the signed-in user to everything below the shell. */
export const ViewerContext = createContext<Viewer | null>(null);

/** The signed-in user. Only below the shell. */
export function useViewer(): Viewer {
  const viewer = use(ViewerContext);
  if (!viewer) throw new Error('nobody is signed in here');
  return viewer;
}

/** The selected team. Only on pages of a team. */
export function useTeam(): TeamChoice {
  const { team } = useViewer();
  if (!team) throw new Error('no team is looked at here');
  return team;
}

/** Whether the viewer may do what takes `role` in this team: the API decides, and this shows it beforehand. */
export function useMay(role: Role): boolean {
  const { session, team } = useViewer();
  return session.operator || roles.indexOf(team?.role ?? 'viewer') >= roles.indexOf(role);
}
