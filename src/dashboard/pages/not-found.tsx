import { Link } from '@tanstack/react-router';
import { Empty } from '../parts/bits.tsx';

/** Stands where an address names no page. */
export function NotFound() {
  return (
    <main className="page">
      <Empty title="There is no such page">
        <Link to="/sandboxes" className="button">
          To the sandboxes
        </Link>
      </Empty>
    </main>
  );
}
