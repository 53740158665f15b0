import { createRootRoute, createRoute, createRouter, redirect, retainSearchParams } from '@tanstack/react-router';
import { Shell } from './layout/shell.tsx';
import { Failed } from './pages/failed.tsx';
import { Join } from './pages/join.tsx';
import { NotFound } from './pages/not-found.tsx';
import { readSandboxesSearch } from './pages/sandboxes/search.ts';
import { Sandboxes } from './pages/sandboxes/sandboxes.tsx';
import { SignIn } from './pages/sign-in.tsx';
import { pageRoutes } from './pages/routes.tsx';

const root = createRootRoute({
  validateSearch: (raw: Record<string, unknown>): { team?: string } =>
    typeof raw['team'] === 'string' ? { team: raw['team'] } : {},
  search: { middlewares: [retainSearchParams(['team'])] },
  notFoundComponent: NotFound,
});
const signIn = createRoute({ getParentRoute: () => root, path: '/signin', component: SignIn });
const join = createRoute({ getParentRoute: () => root, path: '/join', component: Join });
const shell = createRoute({ getParentRoute: () => root, id: 'shell', component: Shell });
const sandboxes = createRoute({
  getParentRoute: () => shell,
  path: '/sandboxes',
  validateSearch: readSandboxesSearch,
  component: Sandboxes,
});

/** Any other address, in the frame of all pages. */
const none = createRoute({ getParentRoute: () => shell, path: '$', component: NotFound });

/** Pages that clients print as `?tab=…` of the dashboard's first page. */
const tabs: Record<string, string> = {
  keys: '/keys',
  general: '/account',
  sandboxes: '/sandboxes',
  templates: '/templates',
};
const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  validateSearch: (raw: Record<string, unknown>): { tab?: string } =>
    typeof raw['tab'] === 'string' ? { tab: raw['tab'] } : {},
  beforeLoad: ({ search }) => {
    throw redirect({ to: tabs[search.tab ?? ''] ?? '/sandboxes', replace: true });
  },
});
/** The address of a sandbox as E2B's command line prints it. */
const inspect = createRoute({
  getParentRoute: () => root,
  path: '/inspect/sandbox/$sandboxId',
  beforeLoad: ({ params }) => {
    throw redirect({ to: '/sandboxes/$sandboxId', params, replace: true });
  },
});

/**
 * Addresses of E2B's own dashboard, which people and programs keep. They begin with a team, which is not needed here.
 */
const elsewhere = [
  ['/$any/sandboxes/$sandboxId', '/sandboxes/$sandboxId'],
  ['/$any/sandboxes/$sandboxId/$tab', '/sandboxes/$sandboxId'],
  ['/$any/templates/$templateId', '/templates/$templateId'],
  ['/$any/templates/$templateId/builds/$buildId', '/templates/$templateId/builds/$buildId'],
  ['/inspect/template/$templateId', '/templates/$templateId'],
].map(([path = '', to = '']) =>
  createRoute({
    getParentRoute: () => root,
    path,
    beforeLoad({ params }) {
      throw redirect({ to, params, replace: true });
    },
  }),
);

/** The pages and their addresses, below `/dashboard`. */
export function createAppRouter() {
  const tree = root.addChildren([
    signIn,
    join,
    home,
    inspect,
    ...elsewhere,
    shell.addChildren([sandboxes, ...pageRoutes(shell), none]),
  ]);
  return createRouter({
    routeTree: tree,
    basepath: '/dashboard',
    scrollRestoration: true,
    defaultErrorComponent: Failed,
  });
}
