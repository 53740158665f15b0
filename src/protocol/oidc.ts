import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { Role } from './api/member.ts';

const textCharactersMax = 512;
const domainsMax = 100;
const text = Type.String({ minLength: 1, maxLength: textCharactersMax });

/** The file that `ATOLL_OIDC_FILE` names: the identity provider at which people sign in, and which of them may. */
export const OidcFile = Type.Object(
  {
    /** Start of discovery (OpenID Connect Discovery 1.0, section 4). */
    issuer: Type.String({ pattern: '^https?://[^?#]+$', maxLength: textCharactersMax }),
    clientId: text,
    clientSecret: text,
    /** What the button says: "Continue with NAME". */
    name: Type.String({ minLength: 1, maxLength: 40 }),
    /** Verified addresses of these domains are trusted: such a person signs in to the account that has the address. */
    emailDomains: Type.Optional(Type.Array(text, { maxItems: domainsMax })),
    /** People without an account get one, in this team. Absent: they are refused. */
    newcomers: Type.Optional(
      Type.Object({ team: Type.String({ description: 'ID or slug' }), role: Role }, { additionalProperties: false }),
    ),
  },
  { additionalProperties: false },
);
export type OidcFile = Static<typeof OidcFile>;
