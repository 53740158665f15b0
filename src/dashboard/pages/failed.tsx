import type { ErrorComponentProps } from '@tanstack/react-router';
import { Page } from '../parts/page.tsx';
import { Problem } from '../parts/bits.tsx';

/** Replaces a page that could not be drawn: the frame around it goes on. */
export function Failed({ error }: ErrorComponentProps) {
  return (
    <Page title="This page has failed">
      <Problem error={error instanceof Error ? error : new Error(String(error))} onRetry={() => location.reload()} />
    </Page>
  );
}
