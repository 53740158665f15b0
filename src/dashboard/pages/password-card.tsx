import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Session } from '../../protocol/api/session.ts';
import { askJson } from '../api/client.ts';
import { useViewer } from '../api/session.tsx';
import { AccountFields, NewPasswordField } from '../parts/account-fields.tsx';
import { Problem } from '../parts/bits.tsx';
import { formText } from '../parts/form-text.ts';
import { Card } from '../parts/page.tsx';
import { useProof } from '../parts/proof.tsx';
import { useToast } from '../parts/toasts.tsx';

/** Sets the user's own password; for an operator who signed in by a link, makes an account with one. */
export function PasswordCard() {
  const { session } = useViewer();
  const client = useQueryClient();
  const toast = useToast();
  const withProof = useProof();
  const [error, setError] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  const hasAccount = session.user !== null;
  const send = async (form: HTMLFormElement) => {
    const [name, email, password] = ['name', 'email', 'password'].map(field => formText(form, field));
    setBusy(true);
    setError(null);
    try {
      const next = await withProof(() =>
        hasAccount
          ? askJson<Session>('/session/password', { method: 'PUT', body: { password } })
          : askJson<Session>('/session/account', { method: 'POST', body: { name, email, password } }),
      );
      client.setQueryData(['/session'], next);
      await client.invalidateQueries({ queryKey: ['/sessions'] });
      form.reset();
      toast({
        kind: 'ok',
        text: hasAccount ? 'The password holds; all other sessions have ended' : 'The account is made',
      });
    } catch (failure) {
      setError(failure as Error);
    }
    setBusy(false);
  };
  return (
    <Card title={hasAccount ? 'Password' : 'An account with a password'}>
      <form
        className="body stack"
        style={{ gap: 12, maxWidth: 420 }}
        onSubmit={event => {
          event.preventDefault();
          void send(event.currentTarget);
        }}
      >
        <p className="muted">
          {hasAccount
            ? 'Setting it ends every other session of yours.'
            : 'With it you sign in without a link, and the audit tells who did what.'}
        </p>
        {error && <Problem error={error} />}
        {hasAccount ? <NewPasswordField /> : <AccountFields />}
        <div>
          <button className="button primary" disabled={busy}>
            {hasAccount ? 'Set the password' : 'Make the account'}
          </button>
        </div>
      </form>
    </Card>
  );
}
