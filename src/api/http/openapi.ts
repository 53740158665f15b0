import { Kind, OptionalKind } from '@sinclair/typebox';
import type { TObject, TSchema } from '@sinclair/typebox';
import { assert } from '../../base/error.ts';
import { ApiError } from '../../protocol/api/primitives.ts';
import type { Way } from '../credential/caller.ts';
import { sessionCookie } from '../session/cookie.ts';
import { actsForTeam, waysOf } from './auth.ts';
import { descriptionOf } from './description.ts';
import { examples } from './examples.ts';
import type { Route } from './route.ts';

type Json = Record<string, unknown>;

const securitySchemes: Json = {
  apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key', description: 'API key of a team: e2b_<hex>' },
  accessToken: { type: 'http', scheme: 'bearer', description: 'Access token of a user: sk_e2b_<hex>' },
  adminToken: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Admin-Token',
    description: "Token of the installation's operator",
  },
  volumeToken: { type: 'http', scheme: 'bearer', description: 'Token of one volume, as its create and read answer it' },
  metricsToken: { type: 'http', scheme: 'bearer', description: 'Token of the installation that reads its metrics' },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: sessionCookie,
    description: "A user's session at the dashboard; counts from a page of this very origin alone",
  },
  operatorSession: { type: 'apiKey', in: 'cookie', name: sessionCookie, description: 'The same of an operator' },
  teamId: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Team-ID',
    description: 'The team for which a user or operator acts',
  },
};

/** The alternatives of each way; all members of an alternative are needed together. */
const securityOf: Record<Way, Json[]> = {
  apiKey: [{ apiKey: [] }],
  userTeam: [
    { accessToken: [], teamId: [] },
    { session: [], teamId: [] },
  ],
  adminTeam: [
    { adminToken: [], teamId: [] },
    { operatorSession: [], teamId: [] },
  ],
  userDefaultTeam: [{ accessToken: [] }, { session: [] }],
  user: [{ accessToken: [] }, { session: [] }],
  admin: [{ adminToken: [] }, { operatorSession: [] }],
  session: [{ session: [] }, { operatorSession: [] }],
  userSession: [{ session: [] }],
  operatorSession: [{ operatorSession: [] }],
  volumeToken: [{ volumeToken: [] }],
  metricsToken: [{ metricsToken: [] }],
};

/**
 * The OpenAPI 3.1 document of the routes, from the same definitions that validate requests. The same routes give the
 * same bytes.
 */
export function openApiDocument(routes: readonly Route[], version: string): Json {
  const components = new Components();
  const paths: Record<string, Json> = {};
  for (const route of routes.toSorted((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))) {
    (paths[route.path] ??= {})[route.method.toLowerCase()] = operation(route, components);
  }
  const errors = components.errors();
  return {
    openapi: '3.1.0',
    info: {
      title: 'Atoll platform API',
      version,
      description:
        'Sandboxes, templates, volumes, and all around them. The page platform-api of the documentation has what is ' +
        'true of every operation: credentials, errors, limits. The interface inside a sandbox is another one.',
    },
    // The document is served where the API is.
    servers: [{ url: '/' }],
    tags: [...new Set(routes.map(({ path }) => tagOf(path)))].toSorted().map(name => ({ name })),
    paths,
    components: { schemas: components.schemas(), responses: errors, securitySchemes },
  };
}

/** The resource of a path: its first word that is neither a version nor the operator's prefix. */
const tagOf = (path: string): string =>
  path.split('/').find(word => word !== '' && word !== 'admin' && !/^v\d+$/.test(word) && !word.startsWith('{')) ??
  'other';

function operation(route: Route, components: Components): Json {
  const parameters = [
    ...parametersOf(route.params, 'path', components),
    ...parametersOf(route.query, 'query', components),
    ...parametersOf(route.headers, 'header', components),
  ];
  return {
    operationId: route.operationId,
    summary: route.summary,
    description: descriptionOf(route),
    tags: [tagOf(route.path)],
    ...(route.deprecated && { deprecated: true }),
    security: waysOf[route.auth].flatMap(way => securityOf[way]),
    ...(actsForTeam(route.auth) && { 'x-atoll-role': route.role }),
    ...(route.proof && { 'x-atoll-proof': true }),
    ...(parameters.length > 0 && { parameters }),
    ...(route.body && {
      requestBody: {
        required: !route.bodyOptional,
        content: jsonContent(components.refer(route.body), examples[route.operationId]),
      },
    }),
    ...(route.upload && { requestBody: { required: true, content: bytesContent() } }),
    responses: responsesOf(route, components),
  };
}

function parametersOf(schema: TObject | null, place: 'path' | 'query' | 'header', components: Components): Json[] {
  return Object.entries(schema?.properties ?? {}).map(([name, member]) => {
    const { description, ...rest } = components.refer(member);
    return {
      name,
      in: place,
      required: member[OptionalKind] === undefined,
      ...(description !== undefined && { description }),
      schema: rest,
      ...(member[Kind] === 'Array' && { style: 'form', explode: false }),
    };
  });
}

function bytesContent(contentType = 'application/octet-stream', more: Json = {}): Json {
  return { [contentType]: { schema: { type: 'string', format: 'binary' }, ...more } };
}

function responsesOf(route: Route, components: Components): Json {
  const responses: Json = {};
  for (const [status, { description, schema, binary, headers, contentType, item }] of Object.entries(route.responses)) {
    responses[status] = {
      description,
      ...(headers && {
        headers: Object.fromEntries(
          Object.entries(headers).map(([name, text]) => [name, { description: text, schema: { type: 'string' } }]),
        ),
      }),
      ...(schema && {
        content:
          contentType === undefined
            ? jsonContent(components.refer(schema))
            : { [contentType]: { schema: components.refer(schema) } },
      }),
      // OpenAPI has a keyword for this only from version 3.2 on.
      ...(binary && { content: bytesContent(contentType, item && { 'x-atoll-event': components.refer(item) }) }),
    };
  }
  for (const status of route.errors) {
    responses[status] = components.referError(status);
  }
  return responses;
}

const errorWords: Record<number, string> = {
  400: 'The request is malformed or breaks a rule; the message names the member',
  401: 'No valid credential',
  403: 'The credential is valid, but this is not for it',
  404: "Absent, or not the caller's",
  409: 'Conflicts with the present state',
  410: 'No longer offered',
  413: 'The request body is too long',
  429: 'A limit is reached',
  500: 'Internal error',
  501: 'Not available in this installation',
  503: 'Not possible now; nothing was changed',
  504: 'Took too long; nothing was changed',
  507: 'There is no space left; nothing was changed',
};

const jsonContent = (schema: Json, example?: object): Json => ({
  'application/json': { schema, ...(example && { example }) },
});

/** Collects the schemas that have an `$id`, and the answers of errors, and refers to them. */
class Components {
  readonly #errors = new Set<number>();
  readonly #schemas = new Map<string, { source: TSchema; json: Json }>();

  refer(schema: TSchema): Json {
    const id = schema.$id;
    if (id === undefined) return this.#plain(schema);
    const known = this.#schemas.get(id);
    assert(
      !known || known.source === schema || JSON.stringify(known.source) === JSON.stringify(schema),
      `two schemas are named ${id}`,
    );
    if (!known) {
      const json: Json = {};
      this.#schemas.set(id, { source: schema, json });
      Object.assign(json, this.#plain(schema));
    }
    return { $ref: `#/components/schemas/${id}` };
  }

  referError(status: number): Json {
    this.#errors.add(status);
    return { $ref: `#/components/responses/Error${status}` };
  }

  errors(): Json {
    const answer = (status: number) => ({
      description: errorWords[status] ?? 'Error',
      content: jsonContent(this.refer(ApiError)),
    });
    return Object.fromEntries(
      [...this.#errors].toSorted((a, b) => a - b).map(status => [`Error${status}`, answer(status)]),
    );
  }

  schemas(): Json {
    return Object.fromEntries(
      [...this.#schemas].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([id, { json }]) => [id, json]),
    );
  }

  #plain(schema: TSchema): Json {
    const { $id: _, properties, additionalProperties, items, anyOf, ...rest } = schema as Json & TSchema;
    const json: Json = { ...rest };
    if (properties && Object.keys(properties as object).length > 0) {
      json['properties'] = Object.fromEntries(
        Object.entries(properties as Record<string, TSchema>).map(([name, member]) => [name, this.refer(member)]),
      );
    }
    if (additionalProperties !== undefined) {
      json['additionalProperties'] =
        typeof additionalProperties === 'object' ? this.refer(additionalProperties as TSchema) : additionalProperties;
    }
    if (items) json['items'] = this.refer(items as TSchema);
    if (anyOf) Object.assign(json, this.#union(anyOf as TSchema[]));
    return json;
  }

  /** Constant words become an enum; any other union stays a choice. */
  #union(branches: TSchema[]): Json {
    const words = branches.map(branch => branch['const'] as unknown);
    if (words.every(word => typeof word === 'string')) return { type: 'string', enum: words };
    return { anyOf: branches.map(branch => this.refer(branch)) };
  }
}
