import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Loading, Problem } from './bits.tsx';

/**
 * What was read, once it is there; until then a loading sign or the error. After an error, older content stays below
 * it.
 */
export function Loaded<T>({ of, children }: { of: UseQueryResult<T>; children: (data: T) => ReactNode }) {
  const { data, error, refetch } = of;
  if (data === undefined) return error ? <Problem error={error} onRetry={() => void refetch()} /> : <Loading />;
  return (
    <>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {children(data)}
    </>
  );
}
