import { AtollError, assert } from '../../base/error.ts';
import type { Method, Route } from './route.ts';

/**
 * Finds routes by raw path. (Bun's own route table also matches the raw path and decodes parameters once, but takes a
 * broken encoding for U+FFFD, treats a wrong method like a missing route, and lets `GET /a/fixed` fall through to
 * `/a/:any`.)
 */
export type RouteTable<R> = (method: string, rawPath: string) => Match<R>;

/** The result for a path and a method. */
type Match<R> =
  | { kind: 'found'; route: R; params: Record<string, string> }
  | { kind: 'method_not_allowed'; allowed: Method[] }
  | { kind: 'not_found' };

type Branch<R> = {
  fixed: Map<string, Branch<R>>;
  parameter: Branch<R> | null;
  routes: Map<Method, { route: R; names: string[] }>;
};

/** A table of routes. A fixed segment has priority over a parameter; `GET` answers `HEAD`. */
export function routeTable<R extends Pick<Route, 'method' | 'path'>>(routes: readonly R[]): RouteTable<R> {
  const root = newBranch<R>();
  for (const route of routes) add(root, route);
  return (method, rawPath) => {
    const segments = rawPath.split('/').slice(1);
    const values: string[] = [];
    let branch = root;
    for (const segment of segments) {
      const fixed = branch.fixed.get(segment);
      if (fixed) {
        branch = fixed;
        continue;
      }
      if (!branch.parameter || segment === '') return { kind: 'not_found' };
      values.push(segment);
      branch = branch.parameter;
    }
    if (branch.routes.size === 0) return { kind: 'not_found' };
    const entry = branch.routes.get((method === 'HEAD' ? 'GET' : method) as Method);
    if (!entry) return { kind: 'method_not_allowed', allowed: [...branch.routes.keys()] };
    const params = Object.fromEntries(
      entry.names.map((name, index) => [name, decodeSegment(name, values[index] ?? '')]),
    );
    return { kind: 'found', route: entry.route, params };
  };
}

function add<R extends Pick<Route, 'method' | 'path'>>(root: Branch<R>, route: R): void {
  const names: string[] = [];
  let branch = root;
  for (const segment of route.path.split('/').slice(1)) {
    if (segment.startsWith('{')) {
      names.push(segment.slice(1, -1));
      branch.parameter ??= newBranch<R>();
      branch = branch.parameter;
    } else {
      const next = branch.fixed.get(segment) ?? newBranch<R>();
      branch.fixed.set(segment, next);
      branch = next;
    }
  }
  assert(!branch.routes.has(route.method), `two routes for ${route.method} ${route.path}`);
  branch.routes.set(route.method, { route, names });
}

function newBranch<R>(): Branch<R> {
  return { fixed: new Map(), parameter: null, routes: new Map() };
}

function decodeSegment(name: string, raw: string): string {
  let text: string;
  try {
    text = decodeURIComponent(raw);
  } catch {
    throw new AtollError('invalid', `${name}: "${raw}" is not valid URL encoding`);
  }
  if (text.includes('\0')) throw new AtollError('invalid', `${name}: must not hold a NUL character`);
  return text;
}
