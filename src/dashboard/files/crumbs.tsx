import { stepsOf } from './paths.ts';

/** The folders on the way to a path, each a link to itself. */
export function Crumbs({ path, onOpen }: { path: string; onOpen: (path: string) => void }) {
  return (
    <nav className="crumbs" aria-label="Folder">
      {stepsOf(path).map(({ name, path }, index) => (
        <span key={path}>
          {index > 1 && <span className="muted">/</span>}
          <button type="button" onClick={() => onOpen(path)}>
            {name}
          </button>
        </span>
      ))}
    </nav>
  );
}
