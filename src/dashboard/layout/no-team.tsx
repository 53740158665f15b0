import { Link } from '@tanstack/react-router';
import { useViewer } from '../api/session.tsx';
import { Empty } from '../parts/bits.tsx';
import { Page } from '../parts/page.tsx';

/** Replaces a team's pages for users who are in no team. */
export function NoTeam() {
  const { session } = useViewer();
  return (
    <Page title="No team yet">
      <div className="table-wrap">
        {session.operator ? (
          <Empty title="There is no team">
            <p>Make one, and its pages are here.</p>
            <Link to="/operator/teams" className="button primary">
              Teams and users
            </Link>
          </Empty>
        ) : (
          <Empty title="You are in no team">
            <p>An admin of a team invites you by a link, or the operator adds you to one. Its pages are here then.</p>
          </Empty>
        )}
      </div>
    </Page>
  );
}
