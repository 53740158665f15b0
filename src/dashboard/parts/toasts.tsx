import { CircleAlert, CircleCheck } from 'lucide-react';
import { createContext, use, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import { createPortal } from 'react-dom';

type Toast = { id: number; kind: 'ok' | 'danger'; text: string };
type Show = (toast: Omit<Toast, 'id'>) => void;

const ToastContext = createContext<Show>(() => {});
const shownMs = { ok: 4_000, danger: 12_000 };
const toastsMax = 4;

/** Reports for a while, in a corner, how something went. */
export const useToast = (): Show => use(ToastContext);

/** Registers a place for messages, until the returned function is called. */
type Enter = (place: HTMLElement) => () => void;
const PlaceContext = createContext<Enter>(() => () => {});

/**
 * Properties of the element that holds messages: it is there and visible before any message, so that screen readers
 * announce them.
 */
const placeProps = { popover: 'manual', className: 'toasts', role: 'status', 'aria-live': 'polite' } as const;

/**
 * The place for messages while a dialog is open: what is outside the dialog is out of reach for its user and is not
 * announced.
 */
export function ToastPlace() {
  const enter = use(PlaceContext);
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => (element.current ? enter(element.current) : undefined), [enter]);
  return <div ref={element} {...placeProps} />;
}

/** Shows the messages of `useToast` above everything below it: in the dialog opened last, if one is open. */
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
    // A counter: two messages of one moment are two, and a clock may stand still longer than one of them takes.
    const id = made.current++;
    setToasts(shown => [...shown.slice(1 - toastsMax), { ...toast, id }]);
    setTimeout(() => setToasts(shown => shown.filter(one => one.id !== id)), shownMs[toast.kind]);
  }, []);
  useLayoutEffect(() => {
    // Above all dialogs, even one opened since: a message often tells why the dialog is still open. A message of a
    // dialog just closed is gone, and another takes its place.
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
