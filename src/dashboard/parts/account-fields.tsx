import { passwordCharactersMin } from '../../protocol/api/session.ts';

/** The field for a new password. */
export function NewPasswordField() {
  return (
    <label className="field">
      <span>New password, {passwordCharactersMin} characters at least</span>
      <input
        name="password"
        type="password"
        autoComplete="new-password"
        minLength={passwordCharactersMin}
        maxLength={200}
        required
      />
    </label>
  );
}

/** The fields of a new account. */
export function AccountFields() {
  return (
    <>
      <label className="field">
        <span>Name</span>
        <input name="name" autoComplete="name" maxLength={128} required />
      </label>
      <label className="field">
        <span>E-mail, with which you sign in</span>
        <input name="email" type="email" autoComplete="username" maxLength={254} required />
      </label>
      <NewPasswordField />
    </>
  );
}
