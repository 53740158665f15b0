import { headersValidator, queryValidator } from './query.ts';
import type { Method, Route } from './route.ts';
import { answerChecker, validator } from './validate.ts';
import type { Validator } from './validate.ts';

/** A route with its schemas compiled. */
export type CompiledRoute<Uses> = {
  method: Method;
  path: string;
  route: Route<Uses>;
  query: Validator | null;
  headers: Validator | null;
  body: Validator | null;
  /** By status; empty unless answers are checked. */
  answers: Map<number, (body: unknown) => void>;
};

/** Compiles the schemas of a route; with `checkAnswers`, also those of its answers. */
export function compileRoute<Uses>(route: Route<Uses>, checkAnswers: boolean): CompiledRoute<Uses> {
  const answers = new Map<number, (body: unknown) => void>();
  for (const [status, { schema }] of Object.entries(route.responses)) {
    if (schema && checkAnswers) answers.set(Number(status), answerChecker(schema, `answer of ${route.operationId}`));
  }
  return {
    method: route.method,
    path: route.path,
    route,
    query: route.query && queryValidator(route.query),
    headers: route.headers && headersValidator(route.headers),
    body: route.body && validator(route.body, 'request body', route.strict ? 'refuse' : 'drop'),
    answers,
  };
}
