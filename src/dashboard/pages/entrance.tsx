import type { ReactNode } from 'react';
import { Logo } from '../layout/logo.tsx';

/** The frame of pages for users who are not signed in. */
export function Entrance({ title, children }: { title: string; children: ReactNode }) {
  return (
    <main className="sign-in">
      <div>
        <div className="row">
          <span className="brand" style={{ padding: 0 }}>
            <Logo size={26} />
          </span>
          <h1>{title}</h1>
        </div>
        {children}
      </div>
    </main>
  );
}
