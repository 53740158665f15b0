import { expect } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ChildOptions } from '../crash-child.ts';
import { bundleCrashChild } from '../crash-program.ts';
import { FakeNode } from '../fake-node.ts';
import { call } from '../platform.ts';

/** What the clients know about a sandbox whose create was answered. */
export type Known = 'alive' | 'killed' | 'kill was asked';

/** Successive platforms on one database and one fake node, each of them killed. */
export class Scene implements AsyncDisposable {
  readonly #directory: string;
  readonly #program: string;
  readonly #options: Omit<ChildOptions, 'seed'>;
  readonly #node: FakeNode;
  readonly #children: Bun.Subprocess[] = [];

  private constructor(directory: string, program: string, location: ChildOptions['location'] | undefined) {
    this.#directory = directory;
    this.#program = program;
    this.#options = {
      location: location ?? { kind: 'sqlite', path: join(this.#directory, 'atoll.db') },
      nodeDirectory: join(this.#directory, 'node'),
      socketPath: join(this.#directory, 'api.sock'),
    };
    this.#node = new FakeNode(this.#options.nodeDirectory);
  }

  static async open(location: ChildOptions['location'] | undefined): Promise<Scene> {
    const directory = mkdtempSync(join(tmpdir(), 'atoll-crash-'));
    return new Scene(directory, await bundleCrashChild(directory), location);
  }

  get socketPath(): string {
    return this.#options.socketPath;
  }

  spawn(childSeed: number) {
    const options: ChildOptions = { ...this.#options, seed: childSeed };
    const child = Bun.spawn([process.execPath, this.#program, JSON.stringify(options)], {
      stdout: 'pipe',
      stderr: 'inherit',
      stdin: 'ignore',
    });
    this.#children.push(child);
    return child;
  }

  /** Starts the platform and resolves once it has adopted what the last one left. */
  async start(childSeed: number): Promise<{ key: string; kill(): Promise<void> }> {
    const child = this.spawn(childSeed);
    let text = '';
    for await (const chunk of child.stdout) {
      text += new TextDecoder().decode(chunk);
      const [, key] = /ready (\S+)\n/.exec(text) ?? [];
      if (key === undefined) continue;
      return {
        key,
        async kill() {
          child.kill('SIGKILL');
          await child.exited;
        },
      };
    }
    throw new Error(`the platform ended with ${await child.exited} before it was ready`);
  }

  /**
   * Compares what the API says with what the clients were told and with what is on the node. Answers the listed
   * sandboxes.
   */
  async check(key: string, known: Map<string, Known>): Promise<Set<string>> {
    const listed = new Set<string>();
    for (let token: string | null = ''; token !== null;) {
      const page = await call(this.socketPath, 'GET', `/v2/sandboxes?${token && `nextToken=${token}`}`, undefined, {
        'x-api-key': key,
      });
      for (const { sandboxID } of page.body as Array<{ sandboxID: string }>) listed.add(sandboxID);
      token = page.headers.get('x-next-token');
    }
    const onNode = this.#node.executions().map(({ sandboxId }) => sandboxId);
    expect(onNode.toSorted()).toEqual([...listed].toSorted());
    for (const [sandboxId, state] of known) {
      if (state === 'alive') expect({ sandboxId, listed: listed.has(sandboxId) }).toEqual({ sandboxId, listed: true });
      if (state === 'killed')
        expect({ sandboxId, listed: listed.has(sandboxId) }).toEqual({ sandboxId, listed: false });
      if (state === 'kill was asked') known.set(sandboxId, listed.has(sandboxId) ? 'alive' : 'killed');
    }
    return listed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) child.kill('SIGKILL');
    await Promise.all(this.#children.map(child => child.exited));
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
