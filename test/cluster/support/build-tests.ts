import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'bun:test';
import { Sandbox, Template } from 'e2b';
import type { testUnless } from '../../support/skip.ts';
import { allReady, type Cluster, connectionTo, createOn, layersEverywhere, until } from './cluster.ts';

/** The machine that a template's newest build was assigned to. */
async function builderOf(cluster: Cluster, templateId: string) {
  const [row] = await cluster.query<{ node_id: string | null }>(
    `select node_id from builds where template_id = '${templateId}' order by created_at_us desc limit 1`,
  );
  return cluster.nodes.find(({ nodeId }) => nodeId === row?.node_id);
}

/**
 * Tests of builds that copy uploaded files, through the published SDK. They need two machines, and destroy one:
 * clusters take long to start, so a suite that has one includes these.
 */
export function testBuilds(clusterTest: ReturnType<typeof testUnless>, cluster: () => Cluster): void {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'atoll-context-'));
    mkdirSync(join(folder, 'files'));
    writeFileSync(join(folder, 'files', 'one.txt'), 'first file\n');
    writeFileSync(join(folder, 'files', 'large.bin'), Buffer.alloc(5_000_000, 'large '));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const definition = (command: string) =>
    Template({ fileContextPath: folder }).fromTemplate('base').copy('files', '/opt/files').runCmd(command);
  /** Builds on one machine: the other is taken out meanwhile. Answers the log. */
  const buildOn = async (nodeNumber: number, control: number, name: string, command: string) => {
    const lines: string[] = [];
    const others = cluster().nodes.filter((_, number) => number !== nodeNumber);
    const set = (status: string) =>
      Promise.all(others.map(({ nodeId }) => cluster().admin(0, 'POST', `/nodes/${nodeId}`, { status })));
    await set('standby');
    const built = await Template.build(definition(command), name, {
      ...connectionTo(cluster(), control),
      onBuildLogs: ({ message }) => void lines.push(message),
    }).finally(() => set('ready'));
    expect((await builderOf(cluster(), built.templateId))?.nodeId).toBe(cluster().nodes[nodeNumber]?.nodeId ?? '');
    return lines.join('\n');
  };

  clusterTest(
    'files that one control process took are copied by the machine that another one tells to build',
    async () => {
      await layersEverywhere(cluster());
      const command = 'cat /opt/files/one.txt > /tmp/seen && wc -c < /opt/files/large.bin >> /tmp/seen';
      const log = await buildOn(0, 0, 'copied', command);
      expect(log).not.toContain('CACHED [builder');
      for (const node of cluster().nodes.slice(0, 2)) {
        const sandbox = await createOn(cluster(), node, {}, 'copied');
        expect((await sandbox.commands.run('cat /tmp/seen')).stdout).toBe('first file\n5000000\n');
        await sandbox.kill();
      }
      // Uploaded once, it is known to every control process and available on every machine; so are the steps.
      const again = await buildOn(1, 1, 'copied-again', command);
      expect(again).toContain('CACHED [builder 1/2]');
      expect(again).toContain('CACHED [builder 2/2]');
      // A step that nobody has run, after files that this machine must fetch.
      const other = await buildOn(1, 1, 'copied-otherwise', 'sha256sum /opt/files/* > /tmp/sums');
      expect(other).toContain('CACHED [builder 1/2]');
      expect(other).not.toContain('CACHED [builder 2/2]');
    },
  );

  clusterTest('a build whose machine is lost begins once more on another one', async () => {
    await allReady(cluster());
    const lines: string[] = [];
    const slow = `echo begun on $(hostname) && sleep 8 && cat /opt/files/one.txt > /tmp/slow`;
    const building = Template.build(definition(slow).setStartCmd('sleep infinity', 'true'), 'slow', {
      ...connectionTo(cluster(), 1),
      onBuildLogs: ({ message }) => void lines.push(message),
    });
    building.catch(() => {}); // awaited below
    await until('the step runs', () => lines.some(line => line.includes('begun on')));
    const [row] = await cluster().query<{ node_id: string }>("select node_id from builds where status = 'building'");
    const lost = cluster().nodes.find(({ nodeId }) => nodeId === row?.node_id);
    if (!lost) throw new Error('nobody builds');
    await lost.destroy();
    cluster().nodes.splice(cluster().nodes.indexOf(lost), 1);
    expect((await cluster().admin(0, 'DELETE', `/admin/nodes/${lost.nodeId}`)).status).toBe(200);
    const { templateId } = await building;
    const [told, left] =
      /The machine that built it \(node (?:\S+)\) was lost: it is built once more, by node (\S+)/.exec(
        lines.join('\n'),
      ) ?? [];
    expect(told).toContain(`(node ${lost.nodeId})`);
    expect(cluster().nodes.map(({ nodeId }) => nodeId)).toContain(left ?? '');
    const sandbox = await Sandbox.create(templateId, connectionTo(cluster(), 0));
    expect((await sandbox.commands.run('cat /tmp/slow')).stdout).toBe('first file\n');
    expect(await sandbox.kill()).toBe(true);
  });
}
