import { useEffect } from 'react';
import type { ReactNode } from 'react';

type PageProps = { title: string; about?: ReactNode; actions?: ReactNode; children: ReactNode };

/** The frame of a page: its name, a line about it, its actions. */
export function Page({ title, about, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Atoll`;
  }, [title]);
  return (
    <main className="page" id="content">
      <div className="page-head">
        <div className="grow">
          <h1 className="cut">{title}</h1>
          {about !== undefined && <div className="muted">{about}</div>}
        </div>
        {actions !== undefined && <div className="row">{actions}</div>}
      </div>
      {children}
    </main>
  );
}

/** A part of a page with its own title. */
export function Card({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  return (
    <section className="card" aria-label={title}>
      <header>
        <h2>{title}</h2>
        {actions !== undefined && <div className="row">{actions}</div>}
      </header>
      {children}
    </section>
  );
}
