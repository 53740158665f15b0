import { CircleAlert, CircleCheck } from 'lucide-react';
import { createContext, use, useCallback, useLayoutEffect, useRef, useState } from 'react';
import type { ReactNode } from 'react';

type Toast = { id: number; kind: 'ok' | 'danger'; text: string };
type Show = (toast: Omit<Toast, 'id'>) => void;

const ToastContext = createContext<Show>(() => {});
const shownMs = { ok: 4_000, danger: 12_000 };
const toastsMax = 4;

/** Says how something went, in a corner, for a while. */
export const useToast = (): Show => use(ToastContext);

/** Shows what `useToast` is told, above everything below it. */
export function Toasts({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<Toast[]>([]);
  const made = useRef(0);
  const element = useRef<HTMLDivElement>(null);
  const show = useCallback<Show>(toast => {
    // Counted: two of one moment are two, and a clock may stand still for longer than one of them takes.
    const id = made.current++;
    setToasts(shown => [...shown.slice(1 - toastsMax), { ...toast, id }]);
    setTimeout(() => setToasts(shown => shown.filter(one => one.id !== id)), shownMs[toast.kind]);
  }, []);
  useLayoutEffect(() => {
    // Above all dialogs, also one that was opened since: what is said is often why it is still open.
    element.current?.hidePopover();
    element.current?.showPopover();
  }, [toasts]);
  return (
    <ToastContext value={show}>
      {children}
      <div ref={element} popover="manual" className="toasts" role="status" aria-live="polite">
        {toasts.map(({ id, kind, text }) => (
          <div key={id} className={`note ${kind}`}>
            {kind === 'ok' ? <CircleCheck size={16} /> : <CircleAlert size={16} />}
            <span>{text}</span>
          </div>
        ))}
      </div>
    </ToastContext>
  );
}
