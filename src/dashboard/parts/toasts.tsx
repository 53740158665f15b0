import { CircleAlert, CircleCheck } from 'lucide-react';
import { createContext, use, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import { createPortal } from 'react-dom';

type Toast = { id: number; kind: 'ok' | 'danger'; text: string };
type Show = (toast: Omit<Toast, 'id'>) => void;

const ToastContext = createContext<Show>(() => {});
const shownMs = { ok: 4_000, danger: 12_000 };
const toastsMax = 4;

/** Says how something went, in a corner, for a while. */
export const useToast = (): Show => use(ToastContext);

/** Takes a place to say things in, until what it answers is called. */
type Enter = (place: HTMLElement) => () => void;
const PlaceContext = createContext<Enter>(() => () => {});

/** What an element is that things are said in: it is there, and shown, before anything is, so that it is read out. */
const placeProps = { popover: 'manual', className: 'toasts', role: 'status', 'aria-live': 'polite' } as const;

/**
 * The place for what is said while a dialog is open: whatever is outside of it is not for who uses the dialog, and is
 * not read out.
 */
export function ToastPlace() {
  const enter = use(PlaceContext);
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => (element.current ? enter(element.current) : undefined), [enter]);
  return <div ref={element} {...placeProps} />;
}

/** Shows what `useToast` is told, above everything below it: in the dialog that was opened last, if one is open. */
export function Toasts({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<Toast[]>([]);
  const made = useRef(0);
  const [own, setOwn] = useState<HTMLElement | null>(null);
  const [dialogs, setDialogs] = useState<readonly HTMLElement[]>([]);
  const place = dialogs.at(-1) ?? own;
  const enter = useCallback<Enter>(element => {
    setDialogs(all => [...all, element]);
    return () => setDialogs(all => all.filter(one => one !== element));
  }, []);
  const show = useCallback<Show>(toast => {
    // Counted: two of one moment are two, and a clock may stand still for longer than one of them takes.
    const id = made.current++;
    setToasts(shown => [...shown.slice(1 - toastsMax), { ...toast, id }]);
    setTimeout(() => setToasts(shown => shown.filter(one => one.id !== id)), shownMs[toast.kind]);
  }, []);
  useLayoutEffect(() => {
    // Above all dialogs, also one that was opened since: what is said is often why it is still open.
    // One of a dialog that has just been closed is gone, and another takes its place.
    if (!place?.isConnected) return;
    place.hidePopover();
    place.showPopover();
  }, [toasts, place]);
  return (
    <ToastContext value={show}>
      <PlaceContext value={enter}>{children}</PlaceContext>
      <div ref={setOwn} {...placeProps} />
      {place &&
        createPortal(
          toasts.map(({ id, kind, text }) => (
            <div key={id} className={`note ${kind}`}>
              {kind === 'ok' ? <CircleCheck size={16} /> : <CircleAlert size={16} />}
              <span>{text}</span>
            </div>
          )),
          place,
        )}
    </ToastContext>
  );
}
