import { useState } from 'react';
import { Dialog, DialogFooter } from './dialog.tsx';

type AskedProps = {
  title: string;
  label: string;
  type: 'number' | 'text';
  /** The field's initial value; default: empty, or one. */
  initial?: string;
  /** The form of a valid answer, as a regular expression. */
  pattern?: string;
  /** An empty answer is not accepted. */
  required?: boolean;
  action: string;
  onDone: (text: string) => void;
  onClose: () => void;
};

/** Asks for one value. */
export function Asked({ title, label, type, initial, pattern, required, action, onDone, onClose }: AskedProps) {
  const [text, setText] = useState(initial ?? (type === 'number' ? '1' : ''));
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
          required={required}
          pattern={pattern}
          {...(type === 'number' && { min: 1, max: 100, required: true })}
          onChange={event => setText(event.target.value)}
        />
      </label>
      <DialogFooter action={action} onClose={onClose} />
    </Dialog>
  );
}
