import { readFileSync } from 'node:fs';
import { Problem } from './problem.mjs';

const nodeMajorMin = 18;
/** Machine types that the pinned runtime has packages for. */
const machines = ['x64', 'arm64'];

/** Throws a `Problem` if Atoll can't run at all: another system, another machine type, an old Node.js, no root. */
export function checkHost() {
  if (process.platform !== 'linux')
    throw new Problem(`Atoll runs on Linux; this is ${process.platform}. Use a Linux machine or a virtual machine.`);
  if (!machines.includes(process.arch))
    throw new Problem(`Atoll runs on x86-64 and arm64; this machine is ${process.arch}.`);
  const major = Number(process.versions.node.split('.')[0]);
  if (major < nodeMajorMin)
    throw new Problem(`Node.js ${nodeMajorMin} or newer is needed to set Atoll up; this is ${process.versions.node}.`);
  if (process.getuid() !== 0)
    throw new Problem('Atoll needs root: it makes namespaces, mounts and network interfaces. Run it with sudo.');
}

/** The distribution: its `ID`, and whether it has apt. */
export function distribution() {
  const fields = {};
  try {
    for (const line of readFileSync('/etc/os-release', 'utf8').split('\n')) {
      const [, name, value] = /^(\w+)="?(.*?)"?$/.exec(line) ?? [];
      if (name) fields[name] = value;
    }
  } catch {
    // No such file: a distribution that we don't know.
  }
  const family = `${fields.ID ?? ''} ${fields.ID_LIKE ?? ''}`.split(' ');
  return {
    name: fields.PRETTY_NAME ?? fields.ID ?? 'this distribution',
    hasApt: family.includes('debian') || family.includes('ubuntu'),
  };
}
