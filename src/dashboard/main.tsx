import './styles/tokens.css';
import './styles/base.css';
import './styles/layout.css';
import './styles/parts.css';
import './styles/views.css';
import { QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { createRoot } from 'react-dom/client';
import { ConnectionsContext, connectionsOfPage } from './api/connections.ts';
import { ApiFailure } from './api/client.ts';
import { rememberedTheme, showTheme } from './layout/theme.ts';
import { Clock } from './parts/bits.tsx';
import { Zones } from './parts/zone.tsx';
import { Toasts } from './parts/toasts.tsx';
import { createAppRouter } from './router.tsx';

const retriesMax = 2;

/** A wrong answer stays wrong; a server that did not answer may answer the next time. */
const mayRetry = (count: number, error: Error) =>
  count < retriesMax && error instanceof ApiFailure && (error.status === 0 || error.status === 503);

const client: QueryClient = new QueryClient({
  defaultOptions: { queries: { staleTime: 2_000, retry: mayRetry, refetchOnWindowFocus: true } },
  queryCache: new QueryCache({
    // The session has ended: the frame asks who is signed in and finds nobody.
    onError: (error, query) => {
      if (error instanceof ApiFailure && error.status === 401 && query.queryKey[0] !== '/session')
        void client.invalidateQueries({ queryKey: ['/session'] });
    },
  }),
});

showTheme(rememberedTheme());
const root = document.getElementById('root');
if (root) {
  createRoot(root).render(
    <QueryClientProvider client={client}>
      <Clock>
        <Zones>
          <Toasts>
            <ConnectionsContext value={connectionsOfPage()}>
              <RouterProvider router={createAppRouter()} />
            </ConnectionsContext>
          </Toasts>
        </Zones>
      </Clock>
    </QueryClientProvider>,
  );
}
