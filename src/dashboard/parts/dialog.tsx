import { useEffect, useId, useRef } from 'react';
import type { ReactNode } from 'react';
import { ToastPlace } from './toasts.tsx';

type DialogProps = { title: string; wide?: boolean; onClose: () => void; onSubmit?: () => void; children: ReactNode };

/** A window above the page that keeps the focus; Escape closes it. With `onSubmit` it is a form. */
export function Dialog({ title, wide, onClose, onSubmit, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  const inside = (
    <>
      <h2 id={heading}>{title}</h2>
      {children}
    </>
  );
  return (
    <dialog
      ref={element}
      className={wide ? 'wide' : undefined}
      aria-labelledby={heading}
      onCancel={event => {
        event.preventDefault();
        onClose();
      }}
    >
      {onSubmit ? (
        <form
          onSubmit={event => {
            event.preventDefault();
            onSubmit();
          }}
        >
          {inside}
        </form>
      ) : (
        <div className="inside">{inside}</div>
      )}
      <ToastPlace />
    </dialog>
  );
}

type ConfirmProps = {
  title: string;
  /** The button's label and action. */
  action: string;
  busy?: boolean;
  onConfirm: () => void;
  onClose: () => void;
  children?: ReactNode;
};

/** Asks before something that can't be undone. */
export function Confirm({ title, action, busy, onConfirm, onClose, children }: ConfirmProps) {
  return (
    <Dialog title={title} onClose={onClose} onSubmit={onConfirm}>
      {children}
      <DialogFooter action={action} danger busy={busy} onClose={onClose} />
    </Dialog>
  );
}

type DialogFooterProps = {
  /** Label of the button that submits the form. */
  action: string;
  /** The button can't be pressed now. */
  busy?: boolean | undefined;
  /** The action can't be undone. */
  danger?: boolean;
  onClose: () => void;
};

/** The end of a form in a dialog: leaves it, or submits it. */
export function DialogFooter({ action, busy, danger, onClose }: DialogFooterProps) {
  return (
    <footer>
      <button type="button" className="button" onClick={onClose}>
        Cancel
      </button>
      <button className={danger ? 'button danger primary' : 'button primary'} disabled={busy}>
        {action}
      </button>
    </footer>
  );
}
