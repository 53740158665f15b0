import { Link } from '@tanstack/react-router';
import { Page } from '../parts/page.tsx';

/** Shown for an address that names no page. */
export function NotFound() {
  return (
    <Page title="There is no such page">
      <Link to="/sandboxes" className="button" style={{ justifySelf: 'start' }}>
        To the sandboxes
      </Link>
    </Page>
  );
}
