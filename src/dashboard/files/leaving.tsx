import { useBlocker } from '@tanstack/react-router';
import { useCallback } from 'react';
import { Confirm } from '../parts/dialog.tsx';
import { nameOf } from './paths.ts';

/** Asks before leaving a page with unsaved text; the browser asks when the page is closed or reloaded. */
export function Leaving({ path, isUnsaved }: { path: string; isUnsaved: boolean }) {
  const shouldBlockFn = useCallback(
    ({ current, next }: { current: Place; next: Place }) =>
      next.pathname !== current.pathname || next.search.file !== current.search.file,
    [],
  );
  const { status, proceed, reset } = useBlocker({
    shouldBlockFn,
    enableBeforeUnload: isUnsaved,
    disabled: !isUnsaved,
    withResolver: true,
  });
  if (status !== 'blocked') return null;
  return (
    <Confirm title={`Leave ${nameOf(path)} unsaved?`} action="Leave" onClose={reset} onConfirm={proceed}>
      <p className="muted">What you have written since it was saved goes.</p>
    </Confirm>
  );
}

type Place = { pathname: string; search: { file?: string } };
