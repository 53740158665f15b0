// What a devcontainer.json may ask for: all that a sandbox can be. Whatever else is refused by its name.
import { dirname } from 'node:path';

/** Why a devcontainer.json can't be had; the message is for its author. */
export class Refused extends Error {}

/** Features whose purpose is a container engine. */
const engines = /(^|\/)(docker-in-docker|docker-outside-of-docker|docker-from-docker|podman-in-podman)(:|@|$)/;
const noEngine =
  'a sandbox has no container engine inside, on crun (no mounts, no user namespaces) nor on gVisor (no packet filter); ' +
  'a machine of your own has one';
/** Capabilities that containers have anyway, and the one for debuggers, which every sandbox has. */
const capabilities = new Set(
  (
    'AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL NET_BIND_SERVICE NET_RAW SETFCAP SETGID SETPCAP SETUID ' +
    'SYS_CHROOT SYS_PTRACE'
  ).split(' '),
);

/**
 * The folder that the sandbox has (`source`), where its programs see it (`target`), empty folders (`volumes`) and
 * further variables. Throws `Refused`.
 */
export function check({ configuration, merged, workspace, folder }) {
  if (merged.privileged) throw new Refused(`privileged can't be had: ${noEngine}`);
  refuseHost(merged);
  const mount = fieldsOf(workspace?.workspaceMount ?? '');
  const source = mount.source ?? mount.src ?? folder;
  const target = mount.target ?? mount.destination ?? mount.dst ?? folder;
  if (source === '/' || !(folder === source || folder.startsWith(`${source}/`)))
    throw new Refused(`workspaceMount: ${source} is not the project's folder or one above it`);
  return {
    source,
    target,
    folder,
    workspaceFolder: workspace?.workspaceFolder ?? target,
    volumes: (merged.mounts ?? []).map(volumeOf),
    variables: { ...merged.containerEnv, ...variablesOf(configuration.runArgs ?? []) },
  };
}

/** Throws `Refused` for what several containers, or an engine inside, are needed for. */
export function refuseEngines(configuration) {
  if (configuration.dockerComposeFile !== undefined)
    throw new Refused('dockerComposeFile: a sandbox is one container; start the others as sandboxes of their own');
  const feature = Object.keys(configuration.features ?? {}).find(name => engines.test(name));
  if (feature !== undefined) throw new Refused(`features: ${feature} can't be had: ${noEngine}`);
}

function refuseHost(merged) {
  const added = (merged.capAdd ?? []).find(name => !capabilities.has(name.replace(/^CAP_/, '')));
  if (added !== undefined) throw new Refused(`capAdd: ${added} is not given to sandboxes`);
  if (merged.hostRequirements?.gpu === true) throw new Refused('hostRequirements: gpu is not given to sandboxes');
  if (merged.overrideCommand === false)
    throw new Refused('overrideCommand: false can’t be had; start the image’s command by postStartCommand');
}

/** `a=b,c=d`, or the same as an object. */
function fieldsOf(mount) {
  if (typeof mount === 'object') return mount;
  return Object.fromEntries(mount.split(',').map(field => [field.split('=')[0], field.slice(field.indexOf('=') + 1)]));
}

function volumeOf(mount) {
  const { type = 'volume', target, destination, dst } = fieldsOf(mount);
  const path = target ?? destination ?? dst;
  if (type === 'bind') throw new Refused(`mounts: ${path} is of the host, which sandboxes don't see; COPY it instead`);
  if (!path?.startsWith('/') || dirname(path) === path) throw new Refused(`mounts: ${path} is no folder to be made`);
  return path;
}

/** The variables of `runArgs`. */
function variablesOf(words) {
  const variables = {};
  for (let at = 0; at < words.length; at++) {
    const equals = words[at].startsWith('--') ? words[at].indexOf('=') : -1;
    const option = equals < 0 ? words[at] : words[at].slice(0, equals);
    const value = () => (equals < 0 ? (words[++at] ?? '') : words[at].slice(equals + 1));
    if (option === '--init') continue;
    const given = value();
    if (option === '-e' || option === '--env')
      variables[given.split('=')[0]] = given.slice(given.indexOf('=') + 1);
    else if (option === '--cap-add' && capabilities.has(given.replace(/^CAP_/, ''))) continue;
    else if (option === '--security-opt' && given === 'seccomp=unconfined') continue;
    else if (option !== '--name')
      throw new Refused(
        `runArgs: ${option} ${given} is for a container engine, and a sandbox has none; there are --init, --env, ` +
          '--name, --cap-add=SYS_PTRACE and --security-opt seccomp=unconfined',
      );
  }
  return variables;
}
