import { useQuery } from '@tanstack/react-query';
import { createContext, use, useCallback, useState } from 'react';
import type { ReactNode } from 'react';
import { askJson } from '../api/client.ts';
import { Loading, Problem } from '../parts/bits.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { codeOfCall } from './call-code.ts';
import type { ApiDocument, Call } from './call-code.ts';
import { CodeTabs } from './code.tsx';

/** The code that is shown: requests, or programs by language; and how to do it after all. */
type Shown = ({ calls: Call[] } | { programs: Record<string, string> }) & { run: () => void };

type Calls = {
  /** Actions show their code instead of being done. */
  isShowing: boolean;
  toggle: () => void;
  show: (shown: Shown) => void;
};

const CallsContext = createContext<Calls>({ isShowing: false, toggle: () => {}, show: () => {} });

/** Whether actions show their code, and how. */
export const useCalls = (): Calls => use(CallsContext);

/** Does something that is no request to the API or, while actions show their code, shows the programs that do it. */
export function useAct(): (programs: () => Record<string, string>, run: () => void) => void {
  const { isShowing, show } = useCalls();
  return (programs, run) => (isShowing ? show({ programs: programs(), run }) : run());
}

/** Shows the code of actions instead of doing them, on demand, for everything below. */
export function ShownCalls({ children }: { children: ReactNode }) {
  const [isShowing, setShowing] = useState(false);
  const [shown, setShown] = useState<Shown | null>(null);
  const toggle = useCallback(() => setShowing(before => !before), []);
  return (
    <CallsContext value={{ isShowing, toggle, show: setShown }}>
      {children}
      {shown && <CodeDialog shown={shown} onClose={() => setShown(null)} />}
    </CallsContext>
  );
}

/** Says that buttons now do something else than usual. */
export function CallsNote() {
  const { isShowing, toggle } = useCalls();
  return (
    isShowing && (
      <div className="code-mode" role="status">
        <span className="grow">
          Actions show their code now, and are not done; what is typed into a terminal runs as ever.
        </span>
        <button type="button" className="button tiny" onClick={toggle}>
          Do them again
        </button>
      </div>
    )
  );
}

function CodeDialog({ shown, onClose }: { shown: Shown; onClose: () => void }) {
  return (
    <Dialog title="The code for this" onClose={onClose}>
      {'calls' in shown ? (
        <CallCode calls={shown.calls} />
      ) : (
        <>
          <CodeTabs texts={shown.programs} />
          <p className="small muted">By the SDKs, which find platform and key in the environment.</p>
        </>
      )}
      <footer>
        <button type="button" className="button" onClick={onClose}>
          Close
        </button>
        <button
          type="button"
          className="button primary"
          onClick={() => {
            onClose();
            shown.run();
          }}
        >
          Do it
        </button>
      </footer>
    </Dialog>
  );
}

/** The code of requests, one at a time. */
function CallCode({ calls }: { calls: Call[] }) {
  const [at, setAt] = useState(0);
  const document = useQuery({
    queryKey: ['/openapi.json'],
    queryFn: () => askJson<ApiDocument>('/openapi.json'),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const call = calls[at] ?? calls[0];
  return (
    <>
      {calls.length > 1 && (
        <label className="field">
          <span>One of {calls.length} requests</span>
          <select value={at} onChange={event => setAt(Number(event.target.value))}>
            {calls.map(({ method, path }, index) => (
              <option key={path} value={index}>
                {method} {path}
              </option>
            ))}
          </select>
        </label>
      )}
      {document.error && <Problem error={document.error} onRetry={() => void document.refetch()} />}
      {document.isLoading && <Loading />}
      {document.data && call && <CodeTabs texts={codeOfCall(document.data, call, location.origin)} />}
      <p className="small muted">JavaScript and Python by the platform’s own clients, which are typed.</p>
    </>
  );
}
