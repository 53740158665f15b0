import type {
  AdminCaller,
  ScraperCaller,
  SessionCaller,
  TeamCaller,
  UserCaller,
  UserSessionCaller,
  VolumeCaller,
  Way,
} from '../credential/caller.ts';

/** Who may call an operation, and the ways in which they may prove it. */
export const waysOf = {
  none: [],
  /** A team: by its key, by one of its members, or by an operator who acts for it. */
  team: ['apiKey', 'userTeam', 'adminTeam'],
  /** The same, or a user for their default team. */
  teamOrUser: ['apiKey', 'userTeam', 'adminTeam', 'userDefaultTeam'],
  /** A person of the team: a key must not make keys. */
  member: ['userTeam'],
  memberOrAdmin: ['userTeam', 'adminTeam'],
  user: ['user'],
  admin: ['admin'],
  /** A person who is signed in at the dashboard. */
  session: ['session'],
  /** The same, with an account. */
  userSession: ['userSession'],
  /** The same, with the operator's rights. */
  operatorSession: ['operatorSession'],
  /** The holder of the token of one volume. */
  volume: ['volumeToken'],
  /** An operator, or the holder of the metrics token, in the one header that every scraper can send. */
  scraper: ['admin', 'metricsToken'],
} as const satisfies Record<string, readonly Way[]>;

/** Who may call an operation. */
export type Auth = keyof typeof waysOf;

/** Whether members of a team call it for the team, each with their role. */
export const actsForTeam = (auth: Auth): boolean =>
  waysOf[auth].some((way: Way) => way === 'userTeam' || way === 'userDefaultTeam');

/** The caller of an operation, by who may call it. */
export type CallerOf = {
  none: null;
  team: TeamCaller;
  teamOrUser: TeamCaller;
  member: TeamCaller;
  memberOrAdmin: TeamCaller;
  user: UserCaller;
  admin: AdminCaller;
  session: SessionCaller;
  userSession: UserSessionCaller;
  operatorSession: SessionCaller;
  volume: VolumeCaller;
  scraper: AdminCaller | ScraperCaller;
};
