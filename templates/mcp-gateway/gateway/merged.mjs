import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import {
  CallToolRequestSchema,
  ErrorCode,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';

/**
 * One server in front of several: it has all their tools, prompts and resources. A name that an earlier server has
 * already gets that of its own server before it.
 */
export function mergedServer(backends) {
  const capabilities = {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true },
  };
  const server = new Server({ name: 'mcp-gateway', version: '1.0.0' }, { capabilities });
  server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools: shown(await named(backends, 'tools')) }));
  server.setRequestHandler(ListPromptsRequestSchema, async () => ({
    prompts: shown(await named(backends, 'prompts')),
  }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) => pass(backends, 'tools', params, extra));
  server.setRequestHandler(GetPromptRequestSchema, ({ params }, extra) => pass(backends, 'prompts', params, extra));
  server.setRequestHandler(ListResourcesRequestSchema, async () => ({
    resources: (await everywhere(backends, 'resources/list', 'resources')).map(({ item }) => item),
  }));
  server.setRequestHandler(ListResourceTemplatesRequestSchema, async () => ({
    resourceTemplates: (await everywhere(backends, 'resources/templates/list', 'resourceTemplates')).map(
      ({ item }) => item,
    ),
  }));
  server.setRequestHandler(ReadResourceRequestSchema, ({ params }, extra) => read(backends, params, extra));
  return server;
}

/** The items of all servers. One that can't list its own hides nobody else's. */
async function everywhere(backends, method, member) {
  const lists = await Promise.allSettled(backends.map(backend => backend.list(method, member)));
  return lists.flatMap((list, index) => {
    if (list.status === 'fulfilled') return list.value.map(item => ({ item, backend: backends[index] }));
    console.error(`${backends[index].name}: ${list.reason?.message}`);
    return [];
  });
}

/** Tools or prompts of all servers by the names that clients see. */
async function named(backends, kind) {
  const found = new Map();
  for (const entry of await everywhere(backends, `${kind}/list`, kind)) {
    const { name } = entry.item;
    found.set(found.has(name) ? `${entry.backend.name.replace(/[^A-Za-z0-9_-]/g, '_')}_${name}` : name, entry);
  }
  return found;
}

const shown = found => [...found].map(([name, { item }]) => ({ ...item, name }));

/** A call of a tool, or a prompt: to the server that has it, under the name that it has there. */
async function pass(backends, kind, params, extra) {
  const entry = (await named(backends, kind)).get(params.name);
  if (!entry) throw new McpError(ErrorCode.InvalidParams, `No server has ${params.name} among its ${kind}`);
  const method = kind === 'tools' ? 'tools/call' : 'prompts/get';
  return entry.backend.request(method, { ...params, name: entry.item.name }, passedOn(extra));
}

/** A resource, of the server that lists it, or of the first that can make it out of a template of its own. */
async function read(backends, params, extra) {
  const listed = await everywhere(backends, 'resources/list', 'resources');
  const owner = listed.find(({ item }) => item.uri === params.uri)?.backend;
  if (owner) return owner.request('resources/read', params, passedOn(extra));
  const templates = await everywhere(backends, 'resources/templates/list', 'resourceTemplates');
  for (const backend of new Set(templates.map(({ backend }) => backend))) {
    const answer = await backend.request('resources/read', params, passedOn(extra)).catch(() => null);
    if (answer) return answer;
  }
  throw new McpError(ErrorCode.InvalidParams, `No server has the resource ${params.uri}`);
}

/** A call that is given up is given up behind the gateway too, and its progress is told before it. */
function passedOn({ signal, _meta, sendNotification }) {
  const progressToken = _meta?.progressToken;
  if (progressToken === undefined) return { signal };
  const onprogress = progress =>
    void sendNotification({ method: 'notifications/progress', params: { ...progress, progressToken } });
  return { signal, onprogress };
}
