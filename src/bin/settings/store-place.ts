import { AtollError } from '../../base/error.ts';
import { readIfThere } from '../../base/small-file.ts';
import type { StorePlace } from '../../blob/open.ts';
import type { Settings } from './settings.ts';

/**
 * Where the cluster keeps what outlives its machines, with the secret from its file; undefined: nowhere. Errors:
 * `invalid` if the secret's file is missing.
 */
export function storePlaceOf(settings: Settings): StorePlace | undefined {
  const { store, storeEndpoint, storeRegion, storeKeyId = '', storeSecret, storeSecretFile } = settings;
  if (store?.kind !== 's3') return store;
  const secret = storeSecret ?? (storeSecretFile === undefined ? undefined : readIfThere(storeSecretFile));
  if (!secret) throw new AtollError('invalid', `ATOLL_STORE_SECRET_FILE: there is no secret in ${storeSecretFile}`);
  return { ...store, endpoint: storeEndpoint, region: storeRegion, keyId: storeKeyId, secret };
}
