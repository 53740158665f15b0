import type { Way } from '../credential/caller.ts';
import { actsForTeam, waysOf } from './auth.ts';
import type { Route } from './route.ts';

const [KiB, MiB] = [2 ** 10, 2 ** 20];

/** Who can prove themselves in each way. */
const callers: Record<Way, string> = {
  apiKey: 'by a key of the team',
  userTeam: 'by a member of the team',
  adminTeam: 'by an operator for the team',
  userDefaultTeam: 'by a user for his default team',
  user: 'by a user',
  admin: 'by an operator',
  session: 'by whoever is signed in at the dashboard',
  userSession: 'by a user who is signed in at the dashboard',
  operatorSession: 'by an operator who is signed in at the dashboard',
  volumeToken: 'with the token of the volume',
  metricsToken: "with the installation's token for metrics",
};

/** What holds for an operation besides its schemas, in sentences derived from the route itself. */
export function descriptionOf(route: Route): string {
  const ways = waysOf[route.auth].map(way => callers[way]);
  return [
    ways.length === 0 ? 'Takes no credential.' : `Called ${listed(ways)}.`,
    ...(actsForTeam(route.auth) ? [`A person needs the role ${route.role} in the team, or more.`] : []),
    ...(route.proof ? ['A session has to have proven lately whose it is.'] : []),
    ...bodySentences(route),
    ...(route.changes ? ['The audit log has each call that is not refused.'] : []),
    ...(route.changes && !route.durable
      ? ['It does not wait for the disk: a loss of power in that moment may take it back.']
      : []),
    ...(route.noStore ? ['Nobody on the way may keep the answer.'] : []),
  ].join(' ');
}

function bodySentences({ body, bodyOptional, bodyBytesMax, strict, upload }: Route): string[] {
  if (upload) return ['The body is bytes, as they are.'];
  if (!body) return [];
  return [
    `The body has at most ${lengthOf(bodyBytesMax)}${bodyOptional ? ', and may be left out' : ''}; members that are ` +
      `not listed are ${strict ? 'refused' : 'ignored'}.`,
  ];
}

const lengthOf = (bytes: number): string => (bytes < MiB ? `${bytes / KiB} KiB` : `${bytes / MiB} MiB`);

/** `a`, `a or b`, `a, b or c`. */
const listed = (parts: readonly string[]): string =>
  parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} or ${parts.at(-1)}`;
