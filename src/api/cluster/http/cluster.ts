import { Type } from '@sinclair/typebox';
import { formatTime } from '../../../base/time.ts';
import {
  ClusterInvite,
  ClusterJoin,
  ClusterJoined,
  ClusterJoinPod,
  ClusterPodJoined,
} from '../../../protocol/api/cluster.ts';
import { NodeForgotten } from '../../../protocol/api/drain.ts';
import { bodyBytesMax } from '../../http/body.ts';
import { route } from '../../http/route.ts';
import { forgetNode, type ForgetDeps } from '../rules/forget.ts';
import { inviteNode, type JoinDeps, joinNode, joinPod, type PodJoinDeps } from '../rules/join.ts';

/** `POST /admin/cluster/invites` */
export const inviteNodeRoute = route({
  operationId: 'adminInviteNode',
  method: 'POST',
  path: '/admin/cluster/invites',
  summary: 'Invite a machine to the cluster',
  auth: 'admin',
  proof: true,
  noStore: true,
  responses: { 201: { description: 'The invitation, shown this once', schema: ClusterInvite } },
  errors: [400],
  async handle(deps: JoinDeps, { audit }) {
    const { token, expiresAtUs } = await inviteNode(deps);
    audit({ target: 'cluster' });
    return { status: 201, body: { token, expiresAt: formatTime(expiresAtUs) } };
  },
});

/** `POST /cluster/join` */
export const joinNodeRoute = route({
  operationId: 'joinCluster',
  method: 'POST',
  path: '/cluster/join',
  summary: 'Join the cluster as a machine, by an invitation',
  auth: 'none',
  noStore: true,
  body: ClusterJoin,
  bodyBytesMax: bodyBytesMax.joinCluster,
  responses: { 201: { description: 'The certificate of the machine', schema: ClusterJoined } },
  errors: [401, 409],
  async handle(deps: JoinDeps, { body, audit }) {
    const { nodeID, tokenID, ...request } = body;
    const answer = await joinNode(deps, { ...request, nodeId: nodeID, tokenId: tokenID });
    audit({ target: `node:${nodeID}`, after: { address: body.address } });
    return { status: 201, body: answer };
  },
});

/** `POST /cluster/join-pod` */
export const joinPodRoute = route({
  operationId: 'joinClusterAsPod',
  method: 'POST',
  path: '/cluster/join-pod',
  summary: 'Join the cluster as the machine of a pod, by the service account of that pod',
  auth: 'none',
  noStore: true,
  body: ClusterJoinPod,
  bodyBytesMax: bodyBytesMax.joinCluster,
  responses: { 201: { description: 'The certificate of the machine', schema: ClusterPodJoined } },
  errors: [401, 409, 429],
  async handle(deps: PodJoinDeps, { body, audit }) {
    const { nodeID, ...request } = body;
    const answer = await joinPod(deps, { ...request, nodeId: nodeID });
    audit({ target: `node:${nodeID}`, after: { address: body.address } });
    return { status: 201, body: answer };
  },
});

/** `DELETE /admin/nodes/{nodeID}` */
export const forgetNodeRoute = route({
  operationId: 'adminForgetNode',
  method: 'DELETE',
  path: '/admin/nodes/{nodeID}',
  summary: 'Forget a machine for good: what only it had is lost',
  auth: 'admin',
  proof: true,
  params: Type.Object({ nodeID: Type.String() }),
  responses: { 200: { description: 'It is forgotten', schema: NodeForgotten } },
  errors: [400, 404, 409],
  async handle(deps: ForgetDeps, { params, audit }) {
    const { lost, stored } = await forgetNode(deps, params.nodeID);
    audit({ target: `node:${params.nodeID}`, before: lost });
    return { status: 200, body: { nodeID: params.nodeID, lost, stored } };
  },
});
