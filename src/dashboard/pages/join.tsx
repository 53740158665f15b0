import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Session } from '../../protocol/api/session.ts';
import { ApiFailure, askJson } from '../api/client.ts';
import { AccountFields } from '../parts/account-fields.tsx';
import { Loading, Problem } from '../parts/bits.tsx';
import { formText } from '../parts/form-text.ts';
import { Entrance } from './entrance.tsx';

/** Accepts an invitation, whose code is in the fragment: as the signed-in user, or with a new account. */
export function Join() {
  const navigate = useNavigate();
  const client = useQueryClient();
  const [invitation] = useState(() => location.hash.slice(1));
  const [error, setError] = useState<ApiFailure | null>(null);
  const [busy, setBusy] = useState(false);
  const session = useQuery({ queryKey: ['/session'], queryFn: () => askJson<Session>('/session'), retry: false });
  const take = async (path: string, body: object) => {
    setBusy(true);
    setError(null);
    try {
      client.setQueryData(['/session'], await askJson<Session>(path, { method: 'POST', body }));
      await navigate({ to: '/sandboxes', replace: true });
    } catch (failure) {
      setError(failure instanceof ApiFailure ? failure : new ApiFailure(0, 'Joining failed'));
      setBusy(false);
    }
  };
  const user = session.data?.user;
  return (
    <Entrance title="Join a team">
      {error && <Problem error={error} />}
      {session.isPending ? (
        <Loading />
      ) : user ? (
        <form
          className="stack"
          onSubmit={event => {
            event.preventDefault();
            void take('/session/teams', { invitation });
          }}
        >
          <p>
            You are signed in as {user.name}. The invitation makes you a member of its team; you keep the ones that you
            have.
          </p>
          <button className="button primary" disabled={busy}>
            Join
          </button>
        </form>
      ) : (
        <form
          className="stack"
          onSubmit={event => {
            event.preventDefault();
            const [name, email, password] = ['name', 'email', 'password'].map(field =>
              formText(event.currentTarget, field),
            );
            void take('/session/invited', { invitation, name, email, password });
          }}
        >
          <p className="muted">Have an account? Sign in first, then open the invitation again.</p>
          <AccountFields />
          <button className="button primary" disabled={busy}>
            Make the account and join
          </button>
        </form>
      )}
    </Entrance>
  );
}
