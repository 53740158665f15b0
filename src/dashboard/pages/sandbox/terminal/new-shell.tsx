import { useState } from 'react';
import { Dialog, DialogFooter } from '../../../parts/dialog.tsx';
import type { ShellStart } from './shell-memory.ts';

type NewShellDialogProps = { onDone: (start: ShellStart) => void; onClose: () => void };

/** Asks for the user and the directory of a new shell. */
export function NewShellDialog({ onDone, onClose }: NewShellDialogProps) {
  const [user, setUser] = useState('root');
  const [cwd, setCwd] = useState('');
  return (
    <Dialog
      title="New shell"
      onClose={onClose}
      onSubmit={() => {
        onClose();
        onDone({ user, ...(cwd !== '' && { cwd }) });
      }}
    >
      <label className="field">
        <span>User</span>
        <input value={user} required pattern="[A-Za-z0-9_][A-Za-z0-9_.\-]*" onChange={of => setUser(of.target.value)} />
      </label>
      <label className="field">
        <span>Directory; empty: the user’s home</span>
        <input value={cwd} pattern="/.*" placeholder="/home/user" onChange={of => setCwd(of.target.value)} />
      </label>
      <DialogFooter action="Open" onClose={onClose} />
    </Dialog>
  );
}
