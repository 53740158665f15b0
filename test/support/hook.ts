import { act, createElement, type ReactNode } from 'react';

/** The results of a dashboard hook, as a component that uses it would see them. */
type UsedHook<T> = AsyncDisposable & {
  /** Its latest result. */
  current(): T;
  /** Runs `step`, and what the hook does in response. */
  act(step: () => unknown): Promise<void>;
  /** Runs the hook again, with the present values of its arguments. */
  again(): Promise<void>;
  /** Once this holds. */
  until(isSo: (current: T) => boolean): Promise<void>;
};

const nothing = () => {};

/**
 * Uses a hook in React's own renderer, in a component that shows nothing: there is no document, and none is needed.
 * `within` wraps it in the surroundings that the hook needs.
 */
export async function usedHook<T>(
  hook: () => T,
  within: (inner: ReactNode) => ReactNode = inner => inner,
): Promise<UsedHook<T>> {
  const page = { nodeType: 9, addEventListener: nothing, activeElement: null, defaultView: globalThis };
  const known = Object.getOwnPropertyDescriptors(globalThis);
  // What the renderer expects of a browser.
  const lent = { window: globalThis, document: page, HTMLIFrameElement: class {}, IS_REACT_ACT_ENVIRONMENT: true };
  for (const [name, value] of Object.entries(lent))
    if (!(name in known)) Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  const { createRoot } = await import('react-dom/client');
  const place = { nodeType: 1, nodeName: 'DIV', tagName: 'DIV', ownerDocument: page, addEventListener: nothing };
  const root = createRoot({ ...place, textContent: '', firstChild: null, lastChild: null } as never);
  const seen: T[] = [];
  const Using = () => {
    seen.splice(0, 1, hook());
    return null;
  };
  const draw = () => act(async () => root.render(within(createElement(Using, { key: 'one' }))));
  const current = () => seen[0] as T;
  await draw();
  return {
    current,
    again: draw,
    act: step => act(async () => void (await step())),
    async until(isSo) {
      while (!isSo(current())) await act(() => new Promise<void>(resolve => setImmediate(resolve)));
    },
    async [Symbol.asyncDispose]() {
      await act(async () => root.unmount());
      for (const name of Object.keys(lent)) if (!(name in known)) Reflect.deleteProperty(globalThis, name);
    },
  };
}
