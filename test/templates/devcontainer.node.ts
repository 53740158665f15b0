import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { Sandbox, Template } from 'e2b';
import { makeImage, writeLayout } from '../builds/support/oci-image.ts';
import { preview } from '../support/preview.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';
import { buildMs, built } from './built.ts';

/** Where the template puts the project. */
const project = '/home/user/project';
const folder = mkdtempSync(join(tmpdir(), 'atoll-devcontainer-'));
const options = { cpuCount: 2, memoryMB: 1024 };

let platform: TestPlatform;
before(
  async () => {
    platform = await startPlatform();
    Object.assign(process.env, platform.env);
    writeLayout(makeImage([{ tar: await systemOfBase(), compression: 'none' }]), join(folder, 'image'));
    writeFileSync(
      join(platform.ready.dataDir, 'images.json'),
      JSON.stringify({ images: { 'dev.invalid/system:1': join(folder, 'image') } }),
    );
  },
  { timeout: 120_000 },
);
after(async () => {
  rmSync(folder, { recursive: true, force: true });
  await platform?.[Symbol.asyncDispose]();
});

/** The programs of a Debian system, without those that only the template `base` has. */
async function systemOfBase(): Promise<Uint8Array> {
  const sandbox = await Sandbox.create('base');
  try {
    await sandbox.commands.run(
      'echo of the image > /etc/whose && userdel user && useradd -m -s /bin/bash dev && ' +
        "tar -C / -cf /srv/system.tar --exclude='usr/lib/gcc*' --exclude='*.a' bin sbin lib lib64 usr/bin usr/sbin usr/lib usr/lib64 usr/libexec etc home/dev root",
      { user: 'root', timeoutMs: 120_000 },
    );
    return await sandbox.files.read('/srv/system.tar', { format: 'bytes', user: 'root' });
  } finally {
    await sandbox.kill();
  }
}

/** A template of a project with this devcontainer.json and these files beside it. */
function templateOf(name: string, configuration: object, files: Record<string, string> = {}) {
  const all = { '.devcontainer/devcontainer.json': `// comments\n${JSON.stringify(configuration)}`, ...files };
  for (const [path, content] of Object.entries(all)) {
    mkdirSync(join(folder, name, path, '..'), { recursive: true });
    writeFileSync(join(folder, name, path), content, { mode: path.endsWith('.sh') ? 0o755 : 0o644 });
  }
  return Template({ fileContextPath: folder }).fromTemplate('devcontainer').copy(name, project);
}

it('a Dockerfile with a feature: the sandbox is the dev container', { timeout: buildMs }, async () => {
  const template = templateOf(
    'full',
    {
      build: { dockerfile: 'Dockerfile', context: '..', args: { WORD: 'told' } },
      features: { './greeter': { word: 'from an option' } },
      remoteUser: 'dev',
      containerEnv: { CONTAINER_WORD: "it's set" },
      remoteEnv: { REMOTE_WORD: '${containerEnv:CONTAINER_WORD} twice', PATH: '${containerEnv:PATH}:/opt/own' },
      mounts: ['source=cache,target=/var/cache/own,type=volume'],
      onCreateCommand: 'echo once >> ~/created',
      postCreateCommand: { one: 'touch ~/one', two: ['touch', '/home/dev/two words'] },
      postStartCommand: 'nohup python3 -m http.server 8000 --directory /workspaces/project >/dev/null 2>&1 &',
      forwardPorts: [8000],
    },
    {
      '.devcontainer/Dockerfile':
        'ARG WORD=default\nFROM dev.invalid/system:1 AS system\nARG WORD=default\nCOPY files/given /etc/given\n' +
        'RUN echo "$WORD" > /etc/word\nENV OF_FILE=yes\n',
      'files/given': 'of the project',
      '.devcontainer/greeter/devcontainer-feature.json': JSON.stringify({
        ...{ id: 'greeter', version: '1.0.0', name: 'Greeter', postCreateCommand: 'greet > ~/greeted' },
        options: { word: { type: 'string', default: 'none' } },
      }),
      '.devcontainer/greeter/install.sh':
        '#!/bin/sh\nprintf "#!/bin/sh\\necho $WORD for $_REMOTE_USER\\n" > /usr/local/bin/greet && chmod 755 /usr/local/bin/greet\n',
    },
  );
  const final = template.betaDevContainerPrebuild(project).betaSetDevContainerStart(project);
  const log: string[] = [];
  const build = () => Template.build(final, 'full', { ...options, onBuildLogs: ({ message }) => log.push(message) });
  await built(build).catch(error => assert.fail(`${error}\n${log.join('\n')}`));
  const sandbox = await Sandbox.create('full');
  try {
    const inside = async (command: string) =>
      (await sandbox.commands.run(`/devcontainer.sh sh -c '${command}'`)).stdout.trim();
    assert.equal(await inside('id -un; pwd; cat /etc/whose'), 'dev\n/workspaces/project\nof the image');
    assert.equal(await inside('cat /etc/word /etc/given; echo; echo $OF_FILE'), 'told\nof the project\nyes');
    assert.equal(await inside('echo "$CONTAINER_WORD, $REMOTE_WORD"'), "it's set, it's set twice");
    assert.match(await inside('echo $PATH'), /:\/opt\/own$/);
    assert.equal(await inside('greet; cat ~/greeted'), 'from an option for dev\nfrom an option for dev');
    assert.equal(await inside('cat ~/created; ls ~/one ~/two*'), 'once\n/home/dev/one\n/home/dev/two words');
    assert.equal(
      await inside('touch mine && ls -d /var/cache/own; ls -A'),
      '/var/cache/own\n.devcontainer\nfiles\nmine',
    );
    const page = await waitFor('the server of postStartCommand', () =>
      preview(platform.ready.url, sandbox.getHost(8000), '/files/given'),
    );
    assert.equal(page, 'of the project');
    await sandbox.commands.run('sudo devcontainer up --workspace-folder /home/user/project', { timeoutMs: 60_000 });
    assert.equal(await inside('cat ~/created'), 'once');
  } finally {
    await sandbox.kill();
  }
});

it('an image alone, without a build before', { timeout: buildMs }, async () => {
  const template = templateOf('image', {
    image: 'dev.invalid/system:1',
    remoteUser: 'dev',
    postCreateCommand: 'id -un > /tmp/who',
  });
  await built(() => Template.build(template.betaSetDevContainerStart(project), 'image', options));
  const sandbox = await Sandbox.create('image');
  try {
    const { stdout } = await sandbox.commands.run('cat /tmp/who /etc/whose; sudo devcontainer exec id -un');
    assert.equal(stdout, 'dev\nof the image\ndev\n');
  } finally {
    await sandbox.kill();
  }
});

const refused: [string, object, RegExp][] = [
  ['compose', { dockerComposeFile: 'compose.yml', service: 'app' }, /dockerComposeFile/],
  [
    'docker',
    { image: 'dev.invalid/system:1', features: { 'ghcr.io/devcontainers/features/docker-in-docker:2': {} } },
    /docker-in-docker/,
  ],
  [
    'privileged',
    { image: 'dev.invalid/system:1', privileged: true },
    /privileged can't be had: a sandbox has no container engine/,
  ],
  [
    'bind',
    { image: 'dev.invalid/system:1', mounts: ['source=/srv,target=/srv,type=bind'] },
    /mounts: \/srv is of the host/,
  ],
  [
    'arguments',
    { image: 'dev.invalid/system:1', runArgs: ['--network=host'] },
    /runArgs: --network host is for a container engine/,
  ],
];
for (const [name, configuration, reason] of refused)
  it(`${name} is refused in one line`, { timeout: buildMs }, async () => {
    const template = templateOf(name, configuration).betaDevContainerPrebuild(project);
    await assert.rejects(
      built(() => Template.build(template, name, options)),
      reason,
    );
  });
