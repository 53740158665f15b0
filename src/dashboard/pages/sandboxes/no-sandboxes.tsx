import { Link } from '@tanstack/react-router';
import { Empty } from '../../parts/bits.tsx';
import { CodeTabs } from '../../code/code.tsx';
import { codeOf, plainWish } from './create/code.ts';

/** What to do when there is no sandbox. */
export function NoSandboxes({ filtered }: { filtered: boolean }) {
  return (
    <div className="table-wrap">
      {filtered ? (
        <Empty title="No sandbox matches">
          <p>Nothing in this team is in that state and has that template and metadata.</p>
          <Link to="/sandboxes" className="button">
            Show all
          </Link>
        </Empty>
      ) : (
        <Empty title="Nothing runs yet">
          <p>
            Create the first sandbox here, or from a program: it needs an <Link to="/keys">API key</Link> and the
            address of this platform in <code>E2B_API_URL</code> and <code>E2B_SANDBOX_URL</code>.
          </p>
          <div className="code" style={{ border: 0, background: 'none' }}>
            <CodeTabs texts={codeOf(plainWish, location.origin)} />
          </div>
        </Empty>
      )}
    </div>
  );
}
