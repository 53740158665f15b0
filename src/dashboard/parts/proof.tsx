import { createContext, use, useCallback, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import type { Session } from '../../protocol/api/session.ts';
import { ApiFailure, ask } from '../api/client.ts';
import { useViewer } from '../api/session.tsx';
import { Problem } from './bits.tsx';
import { Dialog, DialogFooter } from './dialog.tsx';
import { ProviderButton } from './provider-button.tsx';
import { keepReturn } from './return-path.ts';
import { sharedProof } from '../api/shared-proof.ts';

/** Runs a task that may need a recent proof of identity: asks for the proof, and runs it again. */
type WithProof = <T>(task: () => Promise<T>) => Promise<T>;

const ProofContext = createContext<WithProof>(task => task());

/** Makes the person prove their identity if a task needs it. If they give no proof, the task's error stands. */
export const useProof = (): WithProof => use(ProofContext);

/** Whether an operation failed for lack of a proof. */
const isProofNeeded = (error: unknown) => error instanceof ApiFailure && error.code === 'proof_needed';

type Waiting = { settle: (isProven: boolean) => void };

/** Asks for proofs on behalf of everything below it. */
export function Proofs({ children }: { children: ReactNode }) {
  const [waiting, setWaiting] = useState<Waiting | null>(null);
  const prove = useRef(sharedProof(() => new Promise(resolve => setWaiting({ settle: resolve })))).current;
  const withProof = useCallback(<T,>(task: () => Promise<T>) => prove(task, isProofNeeded), [prove]);
  const settle = (isProven: boolean) => {
    waiting?.settle(isProven);
    setWaiting(null);
  };
  return (
    <ProofContext value={withProof}>
      {children}
      {waiting && <ProofDialog onDone={() => settle(true)} onClose={() => settle(false)} />}
    </ProofContext>
  );
}

/** A way to prove one's identity here. */
type Way = 'password' | 'token' | 'link';
const labels: Record<Way, string> = {
  password: 'Password',
  token: 'An access token of yours',
  link: 'A new sign-in link, of bin/atoll dashboard',
};
const others: Record<Way, string> = {
  password: 'Use the password',
  token: 'Use an access token',
  link: 'Use a sign-in link',
};

/** The ways open to a session, the likeliest first. Tokens belong to users: the machine's operator has none. */
const waysOf = ({ user }: Session): Way[] =>
  user ? [...(user.hasPassword ? (['password'] as const) : []), 'token', 'link'] : ['link'];

/** What is sent. A link is accepted whole, as it is printed. */
const proofOf: Record<Way, (text: string) => object> = {
  password: password => ({ password }),
  token: accessToken => ({ accessToken }),
  link: link => ({ code: link.slice(link.indexOf('#') + 1) }),
};

function ProofDialog({ onDone, onClose }: { onDone: () => void; onClose: () => void }) {
  const { session } = useViewer();
  const [error, setError] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  const [text, setText] = useState('');
  const ways = waysOf(session);
  const [way, setWay] = useState<Way>(ways[0] ?? 'link');
  const prove = async () => {
    setBusy(true);
    await ask('/session/proof', { method: 'PUT', body: proofOf[way](text) }).then(onDone, setError);
    setBusy(false);
  };
  return (
    <Dialog title="Is it you?" onClose={onClose} onSubmit={() => void prove()}>
      <p className="muted">
        This hands out rights, or destroys what can’t be made again. It takes a session that has proven within the last
        ten minutes whose it is.
      </p>
      {error && <Problem error={error} />}
      <label className="field">
        <span>{labels[way]}</span>
        <input
          key={way}
          type="password"
          autoComplete={way === 'password' ? 'current-password' : 'off'}
          value={text}
          onChange={event => setText(event.target.value)}
          required
        />
      </label>
      <div className="row">
        {ways
          .filter(one => one !== way)
          .map(one => (
            <button
              key={one}
              type="button"
              className="linklike small"
              onClick={() => {
                setWay(one);
                setText('');
              }}
            >
              {others[one]}
            </button>
          ))}
        {/* Whoever has signed in there does so again, comes back to this page, and has proven it. */}
        {session.user && !session.user.hasPassword && <ProviderButton onFailure={setError} onLeave={keepReturn} />}
      </div>
      <DialogFooter action="Go on" busy={busy} onClose={onClose} />
    </Dialog>
  );
}
