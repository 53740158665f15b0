import { useState } from 'react';
import { Dialog, DialogFooter } from './dialog.tsx';

type AskedProps = {
  title: string;
  label: string;
  type: 'number' | 'text';
  action: string;
  onDone: (text: string) => void;
  onClose: () => void;
};

/** Asks for one value. */
export function Asked({ title, label, type, action, onDone, onClose }: AskedProps) {
  const [text, setText] = useState(type === 'number' ? '1' : '');
  return (
    <Dialog
      title={title}
      onClose={onClose}
      onSubmit={() => {
        onClose();
        onDone(text);
      }}
    >
      <label className="field">
        <span>{label}</span>
        <input
          type={type}
          value={text}
          {...(type === 'number' && { min: 1, max: 100, required: true })}
          onChange={event => setText(event.target.value)}
        />
      </label>
      <DialogFooter action={action} onClose={onClose} />
    </Dialog>
  );
}
