// What a sandbox that is a dev container runs: shell scripts, since its image may have nothing else.
import { Refused } from './check.mjs';

const namePattern = /^[A-Za-z_]\w*$/;

/** Names and contents of the files. */
export function runtimeFiles({ merged, source, target, folder, workspaceFolder, volumes, variables, user, imageUser }) {
  const settings = { source, target, folder, workspace_folder: workspaceFolder, remote_user: user, image_user: imageUser };
  return [
    [
      'settings.sh',
      lines(
        Object.entries(settings).map(([name, value]) => `${name}=${quoted(value)}`),
        `make_volumes() { ${volumes.map(path => `mkdir -p -- ${quoted(path)}; `).join('')}:; }`,
      ),
    ],
    ['variables.sh', lines(...Object.entries({ ...variables, ...merged.remoteEnv }).map(variable))],
    ['created.sh', lifecycle(merged, ['onCreateCommand', 'updateContentCommand', 'postCreateCommand'])],
    ['started.sh', lines(entrypoints(merged), [lifecycle(merged, ['postStartCommand'])])],
  ];
}

const lines = (...parts) => `set -e\n${parts.flat().join('\n')}\n`;

const quoted = text => `'${String(text).replaceAll("'", `'\\''`)}'`;

const withinQuotes = text => text.replaceAll(/[\\"$`]/g, '\\$&');

/** A variable may be made of the image's own (`${containerEnv:NAME}`, with a default after another colon). */
function variable([name, value]) {
  if (!namePattern.test(name)) throw new Refused(`remoteEnv: ${name} is not the name of a variable`);
  if (value === null) return [`unset ${name}`];
  const parts = String(value).split(/\$\{containerEnv:([A-Za-z_]\w*)(?::([^}]*))?\}/);
  let word = '';
  for (let at = 0; at < parts.length; at += 3) {
    word += quoted(parts[at]);
    if (parts[at + 1] !== undefined) word += `"\${${parts[at + 1]}-${withinQuotes(parts[at + 2] ?? '')}}"`;
  }
  return [`export ${name}=${word}`];
}

/** Commands of the configuration and its features, in their order; one that fails ends all. */
function lifecycle(merged, stages) {
  const commands = stages.flatMap(stage =>
    (merged[`${stage}s`] ?? []).flatMap(command => [`say ${quoted(stage)}`, ...commandLines(command)]),
  );
  return lines(commands);
}

function commandLines(command) {
  if (typeof command === 'string') return command === '' ? [] : [`enter /bin/sh -c ${quoted(command)}`];
  if (Array.isArray(command)) return [`enter ${command.map(quoted).join(' ')}`];
  // Those of an object run side by side, and all have to succeed.
  const several = Object.values(command).flatMap(each => commandLines(each));
  return [
    ...several.map((line, index) => `${line} & command_${index}=$!`),
    ...several.map((_, index) => `wait "$command_${index}"`),
  ];
}

const entrypoints = ({ entrypoints: all = [] }) => all.map(each => `/bin/sh -c ${quoted(`${each} true`)}`);
