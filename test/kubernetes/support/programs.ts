import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runToEnd } from '../../support/process.ts';

/**
 * Built from the sources of its module, which Go's own proxy checks; other programs come from the distribution's
 * packages.
 */
const kubernetes = '1.36.3';
const helmVersion = '3.22.0';
const kwokVersion = '0.8.0';
const built = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kube-proxy',
  'kubelet',
  'kubectl',
] as const;
const packaged = ['etcd-server', 'containerd', 'runc'] as const;
/** Where programs and images are kept for other runs. */
export const cacheDir = process.env['ATOLL_CACHE_DIR'] ?? '/var/cache/atoll';
const kept = join(cacheDir, `kubernetes-${kubernetes}`);
const helmFolder = join(cacheDir, `helm-${helmVersion}`);
const kwokFolder = join(cacheDir, `kwok-${kwokVersion}`);
/** A quarter of an hour on one processor, if nothing else runs. */
const buildTimeoutMs = 120 * 60_000;

/** Where the programs are: one folder with each under its name; helm; the folder of kwok and its stages. */
type Programs = { folder: string; helm: string; kwok: string };

const isBuilt = () => existsSync(join(kept, 'complete'));
const goProgram = () => Bun.which('go') ?? (existsSync('/usr/local/go/bin/go') ? '/usr/local/go/bin/go' : null);

/** Why there is no Kubernetes to test with; undefined if there is one, or it can be built. */
export function withoutKubernetes(): string | undefined {
  if (process.getuid?.() !== 0) return 'it needs root';
  if (!existsSync('/usr/lib/cni/bridge'))
    return 'the plugins of container networks are missing (Debian: apt-get install containernetworking-plugins)';
  for (const command of ['openssl', 'nft', 'iptables', 'gcc'])
    if (Bun.which(command) === null) return `${command} is not installed`;
  if (isBuilt() && existsSync(join(helmFolder, 'helm')) && existsSync(join(kwokFolder, 'stages.yaml')))
    return undefined;
  if (goProgram() === null) return 'Kubernetes is built with Go, which is not installed (https://go.dev/dl)';
  return Bun.which('apt-get') === null ? 'etcd, containerd and runc come from packages of Debian (apt-get)' : undefined;
}

/** Builds what is missing; the next run finds it. */
export async function ensurePrograms(): Promise<Programs> {
  if (!isBuilt()) await build();
  const helm = join(helmFolder, 'helm');
  if (!existsSync(helm)) await go(['install', `helm.sh/helm/v3/cmd/helm@v${helmVersion}`], { GOBIN: helmFolder });
  if (!existsSync(join(kwokFolder, 'stages.yaml'))) await buildKwok();
  return { folder: kept, helm, kwok: kwokFolder };
}

/** Builds kwok. Files of its module say how it treats machines and pods. */
async function buildKwok(): Promise<void> {
  const version = `sigs.k8s.io/kwok@v${kwokVersion}`;
  await go(['install', version.replace('@', '/cmd/kwok@')], { GOBIN: kwokFolder });
  const { Dir } = JSON.parse((await go(['mod', 'download', '-json', version], {}, kwokFolder)).stdout) as {
    Dir: string;
  };
  const stages = ['node/fast/node-initialize', 'node/heartbeat-with-lease/node-heartbeat-with-lease'];
  const files = [...stages, 'pod/fast/pod-ready', 'pod/fast/pod-delete'].map(name =>
    readFileSync(join(Dir, 'kustomize/stage', `${name}.yaml`), 'utf8'),
  );
  writeFileSync(join(kwokFolder, 'stages.yaml'), files.join('\n---\n'));
}

async function build(): Promise<void> {
  mkdirSync(cacheDir, { recursive: true });
  const folder = mkdtempSync(join(cacheDir, 'kubernetes-'));
  try {
    const module = join(folder, 'module');
    await writeModule(module);
    const version = 'k8s.io/component-base/version';
    const says = [
      `${version}.gitVersion=v${kubernetes}`,
      `${version}.gitMajor=1`,
      `${version}.gitMinor=${kubernetes.split('.')[1]}`,
      `k8s.io/client-go/pkg/version.gitVersion=v${kubernetes}`,
    ];
    const flags = ['-mod=mod', '-p', '1', '-trimpath', '-ldflags', `-s -w ${says.map(text => `-X ${text}`).join(' ')}`];
    for (const name of built)
      await go(['build', ...flags, '-o', join(folder, name), `k8s.io/kubernetes/cmd/${name}`], {}, module);
    rmSync(module, { recursive: true });
    await unpackPackages(folder);
    writeFileSync(join(folder, 'complete'), '');
    // Another run may have done the same meanwhile.
    if (!isBuilt()) renameSync(folder, kept);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * A module of our own that requires Kubernetes, and says where those modules are that are folders of its repository.
 */
async function writeModule(module: string): Promise<void> {
  mkdirSync(module);
  const { stdout } = await go(['mod', 'download', '-json', `k8s.io/kubernetes@v${kubernetes}`], {}, module);
  const { GoMod } = JSON.parse(stdout) as { GoMod: string };
  const staged = [...readFileSync(GoMod, 'utf8').matchAll(/^\s*(k8s\.io\/\S+) => \.\/staging/gm)].map(
    ([, name]) => name,
  );
  const replaced = staged.map(name => `\t${name} => ${name} v0.${kubernetes.slice(2)}`);
  const lines = ['module atoll-test', '', 'go 1.26.0', '', `require k8s.io/kubernetes v${kubernetes}`, ''];
  writeFileSync(join(module, 'go.mod'), [...lines, 'replace (', ...replaced, ')', ''].join('\n'));
  const imports = built.map(
    name => `import _ "k8s.io/${name === 'kubectl' ? 'kubectl/pkg/cmd' : `kubernetes/cmd/${name}/app`}"`,
  );
  writeFileSync(join(module, 'tools.go'), ['package tools', '', ...imports, ''].join('\n'));
}

/** At low priority, so that it takes only what nobody else wants. */
async function go(args: string[], env: Record<string, string>, cwd?: string): Promise<{ stdout: string }> {
  const program = goProgram();
  if (program === null) throw new Error(withoutKubernetes());
  const { exitCode, stdout, stderr } = await runToEnd(['nice', '-n', '19', program, ...args], {
    env: { ...process.env, GOMAXPROCS: '1', GOFLAGS: '-mod=mod', ...env },
    timeoutMs: buildTimeoutMs,
    ...(cwd !== undefined && { cwd }),
  });
  if (exitCode !== 0) throw new Error(`go ${args.join(' ')}: ${stderr.slice(-2000)}`);
  return { stdout };
}

/** Programs of the distribution, without installing its packages, which would start services. */
async function unpackPackages(folder: string): Promise<void> {
  const packages = join(folder, 'packages');
  mkdirSync(packages);
  const script =
    'set -e; apt-get download "$@"; for file in *.deb; do dpkg-deb --extract "$file" tree; done; ' +
    'mkdir programs; cp tree/usr/bin/* tree/usr/sbin/* programs/ 2>/dev/null || true';
  const { exitCode, stderr } = await runToEnd(['sh', '-c', script, 'sh', ...packaged], { cwd: packages });
  if (exitCode !== 0) throw new Error(`the packages ${packaged.join(', ')} could not be fetched: ${stderr}`);
  cpSync(join(packages, 'programs'), folder, { recursive: true });
  rmSync(packages, { recursive: true });
}
