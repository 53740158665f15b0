import { useQueryClient } from '@tanstack/react-query';
import { useNavigate, useRouter } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import type { Session } from '../../protocol/api/session.ts';
import { ApiFailure, askJson } from '../api/client.ts';
import { Problem } from '../parts/bits.tsx';
import { Code } from '../code/code.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { formText } from '../parts/form-text.ts';
import { answerOfProvider } from '../parts/provider.ts';
import { takeReturn } from '../parts/return-path.ts';
import { ProviderButton } from '../parts/provider-button.tsx';
import { Entrance } from './entrance.tsx';

type Proof =
  | { code: string }
  | { accessToken: string }
  | { email: string; password: string }
  | { provider: { query: string; secret: string } };

/**
 * Signs in with a link's code from the fragment, with e-mail address and password, with an access token, or at the
 * identity provider, which leads back here with its answer in the query.
 */
export function SignIn() {
  const navigate = useNavigate();
  const router = useRouter();
  const client = useQueryClient();
  const [error, setError] = useState<ApiFailure | null>(null);
  const [busy, setBusy] = useState(false);
  const [other, setOther] = useState<{ code: string; name: string } | null>(null);
  const used = useRef(false);
  const begin = async (proof: Proof) => {
    setBusy(true);
    setError(null);
    try {
      const session = await askJson('/session', { method: 'POST', body: proof });
      client.setQueryData(['/session'], session);
      const back = takeReturn();
      if (back === null) await navigate({ to: '/sandboxes', replace: true });
      else router.history.replace(back);
    } catch (failure) {
      setError(failure instanceof ApiFailure ? failure : new ApiFailure(0, 'Signing in failed'));
      setBusy(false);
    }
  };
  useEffect(() => {
    document.title = 'Sign in · Atoll';
    const code = location.hash.slice(1);
    const answer = answerOfProvider();
    if ((code === '' && !answer) || used.current) return;
    // A link works once: neither the history nor a second effect may use it again.
    used.current = true;
    history.replaceState(history.state, '', location.pathname);
    if (answer) return void begin({ provider: answer });
    // Any page can lead here with a link of its own: a signed-in user is asked first, lest they go on as somebody else.
    void askJson<Session>('/session').then(
      session => setOther({ code, name: session.user?.name ?? 'Operator' }),
      () => begin({ code }),
    );
  });
  return (
    <Entrance title="Sign in to Atoll">
      {error && <Problem error={error} />}
      {other && (
        <OtherSession
          name={other.name}
          onClose={() => void navigate({ to: '/sandboxes', replace: true })}
          onConfirm={() => {
            setOther(null);
            void begin({ code: other.code });
          }}
        />
      )}
      <ProviderButton onFailure={setError} />
      <Credentials busy={busy} onProof={proof => void begin(proof)} />
      <div className="stack" style={{ gap: 6 }}>
        <p className="muted">On the machine that runs Atoll, this prints a link that signs in:</p>
        <Code text="bin/atoll dashboard" />
      </div>
    </Entrance>
  );
}

type OtherSessionProps = { name: string; onClose: () => void; onConfirm: () => void };

function OtherSession({ name, onClose, onConfirm }: OtherSessionProps) {
  return (
    <Confirm title="Sign in by this link?" action="Sign in" onClose={onClose} onConfirm={onConfirm}>
      <p className="muted">
        You are signed in as {name}. The link signs in whoever it was made for: go on only if you asked for it.
      </p>
    </Confirm>
  );
}

function Credentials({ busy, onProof }: { busy: boolean; onProof: (proof: Proof) => void }) {
  const [way, setWay] = useState<'password' | 'token'>('password');
  return (
    <form
      className="stack"
      key={way}
      onSubmit={event => {
        event.preventDefault();
        const form = event.currentTarget;
        const [email = '', password = ''] = [formText(form, 'email'), formText(form, 'password')];
        onProof(way === 'password' ? { email, password } : { accessToken: password });
      }}
    >
      {way === 'password' && (
        <label className="field">
          <span>E-mail</span>
          <input name="email" type="email" autoComplete="username" required />
        </label>
      )}
      <label className="field">
        <span>{way === 'password' ? 'Password' : 'Access token'}</span>
        <input
          name="password"
          type="password"
          autoComplete={way === 'password' ? 'current-password' : 'off'}
          placeholder={way === 'password' ? undefined : 'sk_e2b_…'}
          required
        />
      </label>
      <button className="button primary" disabled={busy}>
        {busy ? 'Signing in…' : 'Sign in'}
      </button>
      <button
        type="button"
        className="linklike small"
        onClick={() => setWay(way === 'password' ? 'token' : 'password')}
      >
        {way === 'password' ? 'Use an access token' : 'Use a password'}
      </button>
    </form>
  );
}
