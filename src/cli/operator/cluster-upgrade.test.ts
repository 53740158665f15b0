import { expect, test } from 'bun:test';
import { platformVersion } from '../../base/version.ts';
import { clusterUpgradeCommand } from './cluster-upgrade.ts';

/** A cluster with machines of these releases, which records what is asked of it. */
function scene(releases: Record<string, string>, stuck: Record<string, string> = {}) {
  const said: string[] = [];
  const nodes = Object.entries(releases).map(([id, version]) => ({ id, version, status: 'ready', left: 2 }));
  const find = (path: string) => nodes.find(({ id }) => path.includes(id));
  const request = async (method: string, path: string, body?: unknown) => {
    if (method === 'GET' && path === '/nodes') return nodes;
    const node = find(path);
    if (!node) throw new Error(path);
    if (method === 'POST') {
      said.push(`${JSON.stringify(body)} ${node.id}`);
      node.status = (body as { status?: string }).status ?? 'draining';
      return {};
    }
    const reason = stuck[node.id];
    if (path.endsWith('?mode=move')) return { sandboxes: [{ sandboxID: 's', ...(reason && { reason }) }] };
    return { sandboxes: Array.from({ length: node.status === 'draining' ? --node.left : node.left }, () => ({})) };
  };
  const terminal = {
    text: '',
    isInteractive: false,
    out(part: string) {
      this.text += part;
    },
    err(part: string) {
      this.text += part;
    },
  };
  const run = async (program: string, nodeId: string) => {
    const node = find(nodeId);
    said.push(`${program} ${nodeId} with ${node?.left} left`);
    if (!node || program === 'fails') return 7;
    node.version = platformVersion;
    return 0;
  };
  const command = clusterUpgradeCommand({ request: request as never, run, pollMs: 1 });
  return { said, nodes, terminal, upgrade: (...args: string[]) => command.run(args, terminal as never) };
}

test('machines of other releases are emptied, replaced and put back, one after the other', async () => {
  const { said, nodes, upgrade } = scene({ n1: '0.0.1', n2: platformVersion, n3: '0.0.2' });
  expect(await upgrade('--run', 'replace')).toBe(0);
  expect(said).toEqual(
    ['n1', 'n3'].flatMap(id => [`{"mode":"move"} ${id}`, `replace ${id} with 0 left`, `{"status":"ready"} ${id}`]),
  );
  expect(nodes.map(({ version, status }) => [version, status])).toEqual(nodes.map(() => [platformVersion, 'ready']));
  expect(await upgrade()).toBe(0);
});

test('what can not be moved is listed before anything is changed', async () => {
  const { said, terminal, upgrade } = scene({ n1: '0.0.1' }, { n1: 'it has volumes' });
  await expect(upgrade('--run', 'replace')).rejects.toMatchObject({ code: 'precondition' });
  expect(terminal.text).toContain('it has volumes');
  expect(said).toEqual([]);
});

test('a machine whose program is not replaced ends the upgrade, and takes no sandboxes', async () => {
  const { said, nodes, upgrade } = scene({ n1: '0.0.1', n3: '0.0.2' });
  await expect(upgrade('--run', 'fails')).rejects.toThrow('ended with 7 for node n1');
  expect(nodes.map(({ status }) => status)).toEqual(['draining', 'ready']);
  expect(said).toEqual(['{"mode":"move"} n1', 'fails n1 with 0 left']);
});
