import { Type } from '@sinclair/typebox';
import { dateTime } from './primitives.ts';

/** An invitation of a machine. */
export const ClusterInvite = Type.Object(
  { token: Type.String({ description: 'For `atoll node --token`; good once, for an hour' }), expiresAt: dateTime() },
  { $id: 'ClusterInvite' },
);

/** What every joining machine says of itself. */
const joining = {
  nodeID: Type.String({ maxLength: 64 }),
  address: Type.String({ maxLength: 300, description: '`host:port` at which control reaches the machine' }),
  publicKey: Type.String({ maxLength: 2_000, description: 'PEM of a public key on the curve P-256' }),
  known: Type.Optional(
    Type.Object(
      {
        certificate: Type.String({ maxLength: 4_000, description: 'PEM of the certificate that it has' }),
        proof: Type.String({ maxLength: 200, description: 'Signature by the key of that certificate, base64' }),
      },
      { description: 'Of a machine that has joined before: nobody else may join under its ID' },
    ),
  ),
  machine: Type.Optional(
    Type.Object(
      {
        release: Type.String({ maxLength: 64 }),
        architecture: Type.String({ maxLength: 64, description: 'As its kernel names it, e.g. `x86_64`' }),
        nowMs: Type.Number({ description: 'What its clock shows, milliseconds since 1970' }),
      },
      { description: 'What the machine is: one of another architecture, release or time is refused' },
    ),
  ),
};

/** What a joining machine says. `proof` shows that it has the token, which is never sent. */
export const ClusterJoin = Type.Object(
  {
    tokenID: Type.String({ maxLength: 64 }),
    ...joining,
    proof: Type.String({ maxLength: 64, description: 'HMAC-SHA-256, hexadecimal' }),
  },
  { $id: 'ClusterJoin' },
);

/** What the machine of a pod says when it joins. */
export const ClusterJoinPod = Type.Object(
  {
    token: Type.String({ maxLength: 8_192, description: "Of the pod's service account, for the audience `atoll`" }),
    ...joining,
  },
  { $id: 'ClusterJoinPod' },
);

const certified = {
  certificate: Type.String({ description: 'PEM, for the key that was sent' }),
  authority: Type.String({ description: "PEM of the cluster's authority" }),
};

/** What the machine of a pod gets when it has joined. */
export const ClusterPodJoined = Type.Object(certified, { $id: 'ClusterPodJoined' });

/** What a machine gets when it has joined. */
export const ClusterJoined = Type.Object(
  {
    ...certified,
    proof: Type.String({ description: 'HMAC-SHA-256, hexadecimal, by which the machine knows who answers' }),
  },
  { $id: 'ClusterJoined' },
);
