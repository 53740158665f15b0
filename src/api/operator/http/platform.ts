import { Type } from '@sinclair/typebox';
import { JsonText } from '../../../base/json-text.ts';
import { freeObject } from '../../../protocol/api/primitives.ts';
import { route } from '../../http/route.ts';
import type { Health } from '../../database/health.ts';

/** `GET /health` */
export const health = route({
  operationId: 'getHealth',
  method: 'GET',
  path: '/health',
  summary: 'Check whether the platform takes requests; if not, the message names the part that does not answer',
  auth: 'none',
  responses: { 200: { description: 'It does', schema: Type.Object({ status: Type.Literal('ok') }) } },
  async handle({ health }: { health: Health }) {
    await health.check();
    return { status: 200, body: { status: 'ok' as const } };
  },
});

/** The route of the document that describes all routes, this one included; it is written as text once. */
export function documentRoute(document: () => Record<string, unknown>) {
  let text: JsonText<Record<string, unknown>> | undefined;
  return route({
    operationId: 'getOpenApi',
    method: 'GET',
    path: '/openapi.json',
    summary: 'Get this document',
    auth: 'none',
    responses: { 200: { description: 'The OpenAPI document', schema: freeObject() } },
    async handle() {
      text ??= new JsonText(JSON.stringify(document()));
      return { status: 200, body: text };
    },
  });
}
