import { expect } from 'bun:test';
import { waitFor } from '../../support/process.ts';
import type { StormClient } from './storm-client.ts';

/** So many at a time. */
const volumesMax = 6;
const templatesMax = 6;
const notePath = '/home/user/built.txt';

/** What a client makes under a name of its own; `undefined`: a strike cut off the answer that would have told. */
type Named = { name: string; isThere: boolean | undefined; busy: boolean };
type KnownVolume = Named & {
  id: string;
  token: string;
  /** For each file, the last text whose write was answered, and those whose write was not. */
  files: Map<string, Set<string>>;
};
type KnownTemplate = Named & { id: string; note: string };

/** What a storm's clients keep besides sandboxes: volumes, and templates that they build. */
export class Stores {
  readonly #client: StormClient;
  readonly #volumes: KnownVolume[] = [];
  readonly #templates: KnownTemplate[] = [];
  readonly made = { volumes: 0, templates: 0 };
  #names = 0;

  constructor(client: StormClient) {
    this.#client = client;
  }

  /** Operations of one client, one after another, until the platform dies. */
  async work(random: () => number): Promise<void> {
    while (!this.#client.over) {
      const dice = random();
      if (!(await (dice < 0.7 ? this.#useVolume(dice / 0.7, random) : this.#useTemplate((dice - 0.7) / 0.3, random))))
        return;
    }
  }

  async #useVolume(dice: number, random: () => number): Promise<boolean> {
    const idle = this.#volumes.filter(({ busy, isThere }) => !busy && isThere === true);
    const volume = idle[Math.floor(random() * idle.length)];
    if (!volume || (dice < 0.1 && this.#volumes.length < volumesMax)) return this.#createVolume();
    return worked(volume, () => {
      if (dice < 0.2) return this.#delete(volume, `/volumes/${volume.id}`);
      return dice < 0.7 ? this.#writeByApi(volume, random) : this.#writeInside(volume);
    });
  }

  async #createVolume(): Promise<boolean> {
    const name = this.#newName();
    const answer = await this.#client.ask('POST', '/volumes', { name });
    // One that nobody was told of is empty, and nobody asks for it again: it goes at the end.
    if (!answer) return false;
    expect(answer.status).toBe(201);
    const { volumeID: id, token } = answer.body as { volumeID: string; token: string };
    this.#volumes.push({ name, isThere: true, busy: false, id, token, files: new Map() });
    this.made.volumes++;
    return true;
  }

  async #writeByApi(volume: KnownVolume, random: () => number): Promise<boolean> {
    const [file, text] = [`/file-${Math.floor(random() * 4)}`, this.#newName()];
    tried(volume, file, text);
    const answer = await this.#content(volume, 'PUT', file, text);
    if (answer?.status !== 201) return !this.#client.over;
    volume.files.set(file, new Set([text]));
    this.#client.answered++;
    return true;
  }

  /** A sandbox with the volume writes to it, and reports when the data is on the disk. */
  async #writeInside(volume: KnownVolume): Promise<boolean> {
    const [file, text] = ['/inside', this.#newName()];
    this.#client.unknownMax++;
    const answer = await this.#client.ask('POST', '/sandboxes', {
      templateID: 'base',
      timeout: 3600,
      volumeMounts: [{ name: volume.name, path: '/data' }],
    });
    if (!answer) return false;
    expect(answer.status).toBe(201);
    const { sandboxID } = answer.body as { sandboxID: string };
    tried(volume, file, text);
    const said = await this.#client
      .run(sandboxID, `cd /data; echo -n ${text} > new && sync new && mv new .${file} && sync . && echo synced`)
      .catch(() => '');
    if (said === 'synced\n') volume.files.set(file, new Set([text]));
    const killed = await this.#client.ask('DELETE', `/sandboxes/${sandboxID}`);
    if (!killed) return false;
    expect(killed.status).toBe(204);
    this.#client.unknownMax--;
    return true;
  }

  #content({ id, token }: KnownVolume, method: string, path: string, body?: string): Promise<Response | undefined> {
    const url = new URL(`/volumecontent/${id}/file`, this.#client.platform.ready.url);
    url.searchParams.set('path', path);
    return fetch(url, {
      method,
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/octet-stream' },
      ...(body !== undefined && { body }),
    }).catch(() => undefined);
  }

  async #useTemplate(dice: number, random: () => number): Promise<boolean> {
    const idle = this.#templates.filter(({ busy, isThere }) => !busy && isThere === true);
    const template = idle[Math.floor(random() * idle.length)];
    if (!template || this.#templates.length < templatesMax) return this.#build();
    return worked(template, () =>
      dice < 0.5 ? this.#delete(template, `/templates/${template.id}`) : this.#start(template),
    );
  }

  async #build(): Promise<boolean> {
    const [name, note] = [this.#newName(), this.#newName()];
    const template: KnownTemplate = { name, note, id: '', isThere: undefined, busy: true };
    this.#templates.push(template);
    const isBuilt = await this.#buildAs(template);
    template.busy = false;
    if (isBuilt === true) this.made.templates++;
    template.isThere = isBuilt;
    return isBuilt !== undefined;
  }

  /** Whether it was built; undefined if a strike cut that off. */
  async #buildAs(template: KnownTemplate): Promise<boolean | undefined> {
    const registered = await this.#client.ask('POST', '/v3/templates', { name: template.name });
    if (!registered) return undefined;
    expect(registered.status).toBe(202);
    const { templateID, buildID } = registered.body as { templateID: string; buildID: string };
    template.id = templateID;
    const build = `templates/${templateID}/builds/${buildID}`;
    const step = { type: 'RUN', args: [`echo -n ${template.note} > ${notePath}`] };
    const started = await this.#client.ask('POST', `/v2/${build}`, { fromTemplate: 'base', steps: [step] });
    if (!started) return undefined;
    expect(started.status).toBe(202);
    while (!this.#client.over) {
      await Bun.sleep(buildLookMs);
      const answer = await this.#client.platform.api('GET', `/${build}/status`).catch(() => undefined);
      // A kill during a build ends the build, and it says so.
      if (answer?.status !== 200) continue;
      const { status, reason } = (await answer.json()) as { status: string; reason?: unknown };
      if (status === 'ready') return true;
      if (!this.#client.over)
        expect({ status, reason }).toMatchObject({ status: expect.stringMatching(/^(?:waiting|building)$/) });
    }
    return undefined;
  }

  async #start(template: KnownTemplate): Promise<boolean> {
    const note = await this.#noteOf(template);
    if (note === undefined) return !this.#client.over;
    expect({ ...template, note }).toEqual(template);
    return true;
  }

  /** What a sandbox of the template has from its build; undefined if a strike cut that off. */
  async #noteOf({ name }: KnownTemplate): Promise<string | undefined> {
    this.#client.unknownMax++;
    const answer = await this.#client.ask('POST', '/sandboxes', { templateID: name, timeout: 3600 });
    if (!answer) return undefined;
    expect({ name, ...answer }).toMatchObject({ status: 201 });
    const { sandboxID } = answer.body as { sandboxID: string };
    const note = await this.#client.run(sandboxID, `cat ${notePath} && echo .`).catch(() => '');
    const killed = await this.#client.ask('DELETE', `/sandboxes/${sandboxID}`);
    if (!killed) return undefined;
    this.#client.unknownMax--;
    return note.endsWith('.\n') ? note.slice(0, -2) : undefined;
  }

  async #delete(one: Named, path: string): Promise<boolean> {
    one.isThere = undefined;
    const answer = await this.#client.ask('DELETE', path);
    if (!answer) return false;
    expect({ path, ...answer }).toMatchObject({ status: 204 });
    one.isThere = false;
    return true;
  }

  #newName(): string {
    return `storm-${this.#names++}`;
  }

  /** Compares the platform's state with what the clients were told, after a strike. */
  async check(random: () => number): Promise<void> {
    const volumes = await this.#listed<{ name: string }>('/volumes', ({ name }) => [name]);
    this.#settle(this.#volumes, volumes);
    for (const volume of this.#volumes) await this.#look(volume);
    const templates = await this.#listed<{ names: string[]; buildStatus: string }>('/templates', template =>
      template.buildStatus === 'ready' ? template.names.map(name => name.split('/').at(-1) ?? '') : [],
    );
    this.#settle(this.#templates, templates);
    const template = this.#templates[Math.floor(random() * this.#templates.length)];
    if (!template) return;
    const note = await waitFor('a sandbox of a template', () => this.#noteOf(template));
    expect({ ...template, note }).toEqual(template);
  }

  async #listed<Item>(path: string, namesOf: (item: Item) => string[]): Promise<Set<string>> {
    const answer = await waitFor(path, async () => {
      const response = await this.#client.platform.api('GET', path);
      return response.status === 200 && ((await response.json()) as Item[]);
    });
    return new Set(answer.flatMap(namesOf));
  }

  /** What was answered must be so; what no longer exists need not be known to anybody. */
  #settle(known: Named[], listed: Set<string>): void {
    const wrong = known.filter(({ name, isThere }) => isThere !== undefined && isThere !== listed.has(name));
    expect(wrong.map(({ name, isThere }) => `${name}: ${isThere ? 'is lost' : 'came back'}`)).toEqual([]);
    for (const one of known.splice(0)) {
      if (listed.has(one.name)) known.push({ ...one, isThere: true, busy: false });
    }
  }

  /** Each file contains what was written last, or a write whose answer was cut off. */
  async #look(volume: KnownVolume): Promise<void> {
    for (const [file, texts] of volume.files) {
      const text = await waitFor(`${file} of ${volume.name}`, async () => {
        const answer = await this.#content(volume, 'GET', file);
        if (answer?.status === 404) return texts.has('') && '(none)';
        return answer?.status === 200 && `=${await answer.text()}`;
      });
      const found = text === '(none)' ? '' : text.slice(1);
      expect({ volume: volume.name, file, isKnown: texts.has(found), found, known: [...texts] }).toMatchObject({
        isKnown: true,
      });
      volume.files.set(file, new Set([found]));
    }
  }

  /** Removes everything, including what nobody was told of. */
  async finish(): Promise<void> {
    for (const [path, idOf] of removable) {
      const answer = await this.#client.platform.api('GET', path);
      for (const item of (await answer.json()) as Record<string, unknown>[]) {
        if (!String(item['name'] ?? item['names']).includes('storm-')) continue;
        expect((await this.#client.platform.api('DELETE', `${path}/${String(item[idOf])}`)).status).toBe(204);
      }
    }
  }
}

const buildLookMs = 100;
const removable = [
  ['/volumes', 'volumeID'],
  ['/templates', 'templateID'],
] as const;

/** A write that may have happened. A file that did not exist may still be missing: ''. */
function tried({ files }: KnownVolume, file: string, text: string): void {
  files.set(file, new Set([...(files.get(file) ?? ['']), text]));
}

async function worked(one: Named, work: () => Promise<boolean>): Promise<boolean> {
  one.busy = true;
  const goesOn = await work();
  one.busy = false;
  return goesOn;
}
