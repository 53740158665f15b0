import { roles } from '../../../protocol/api/member.ts';
import type { Role } from '../../../protocol/api/member.ts';

const may: Record<Role, string> = {
  viewer: 'sees everything of the team',
  developer: 'also changes sandboxes, templates, volumes, secrets',
  admin: 'also decides about members, API keys, webhooks',
};

/** The roles of a team to choose from, with what each may do. */
export function RoleFields({ role, onChange }: { role: Role; onChange: (role: Role) => void }) {
  return (
    <fieldset className="stack" style={{ gap: 8 }}>
      <legend>Role</legend>
      {roles.map(one => (
        <label key={one} className="check">
          <input type="radio" name="role" checked={role === one} onChange={() => onChange(one)} />
          <span>
            {one} <span className="muted">{may[one]}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
