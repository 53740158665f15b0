import type { TeamAPIKey } from '../../../protocol/api/team.ts';
import { formatTime } from '../../../base/time.ts';
import { credentialPrefixes } from '../rules/credential.ts';
import type { CredentialFamily } from '../rules/credential.ts';
import type { AccessTokenRecord, ApiKeyRecord, CredentialRecord } from '../record.ts';
import type { UserRecord } from '../../team/record.ts';

/** An API key without the key itself. */
export function apiKeyView(key: ApiKeyRecord, createdBy: UserRecord | null): TeamAPIKey {
  return {
    id: key.keyId,
    name: key.name,
    mask: maskView('apiKey', key),
    createdAt: formatTime(key.createdAtUs),
    createdBy: createdBy && { id: createdBy.userId, email: createdBy.email },
    lastUsed: key.lastUsedAtUs === null ? null : formatTime(key.lastUsedAtUs),
  };
}

/** An access token without the token itself. */
export function accessTokenView(token: AccessTokenRecord) {
  return {
    id: token.tokenId,
    name: token.name,
    mask: maskView('accessToken', token),
    createdAt: formatTime(token.createdAtUs),
  };
}

function maskView(family: CredentialFamily, credential: CredentialRecord): TeamAPIKey['mask'] {
  return {
    prefix: credentialPrefixes[family],
    valueLength: credential.valueLength,
    maskedValuePrefix: credential.maskPrefix,
    maskedValueSuffix: credential.maskSuffix,
  };
}
