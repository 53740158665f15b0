import { useQuery } from '@tanstack/react-query';
import type { SignInProvider } from '../../protocol/api/session.ts';
import { ApiFailure, askJson } from '../api/client.ts';
import { goToProvider } from './provider.ts';

type ProviderButtonProps = {
  onFailure: (failure: ApiFailure) => void;
  /** Called when the page is about to be left. */
  onLeave?: () => void;
};

/** Leads to the identity provider, if the installation has one. */
export function ProviderButton({ onFailure, onLeave }: ProviderButtonProps) {
  const { data } = useQuery({
    queryKey: ['/session/provider'],
    queryFn: () => askJson<SignInProvider>('/session/provider'),
  });
  if (!data || data.name === null) return null;
  return (
    <button
      type="button"
      className="button"
      onClick={() => {
        onLeave?.();
        void goToProvider().catch(error =>
          onFailure(error instanceof ApiFailure ? error : new ApiFailure(0, 'The identity provider can’t be reached')),
        );
      }}
    >
      Continue with {data.name}
    </button>
  );
}
