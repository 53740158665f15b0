import type { ButtonHTMLAttributes } from 'react';
import type { Role } from '../../protocol/api/member.ts';
import { useMay } from '../api/session.tsx';

/** Why the viewer may not do what takes `role`, in words; undefined if they may. */
export function useForbidden(role: Role): string | undefined {
  return useMay(role) ? undefined : `It takes the role ${role} in the team`;
}

/** `least`: the required role. */
type RoleButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & { least: Role };

/** A button that is disabled, and says why, for users whose role does not suffice. */
export function RoleButton({ least, disabled, title, className = 'button', ...rest }: RoleButtonProps) {
  const why = useForbidden(least);
  return (
    <button
      type="button"
      {...rest}
      className={className}
      disabled={disabled || why !== undefined}
      title={why ?? title}
    />
  );
}
