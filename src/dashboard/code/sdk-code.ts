import { pythonOf, shellText } from './call-code.ts';

/** A requested change of files. `upload`: the user's own files, by their paths below the folder. */
export type FileChange =
  | { what: 'folder' | 'remove'; path: string }
  | { what: 'write'; path: string; text: string }
  | { what: 'rename'; path: string; to: string }
  | { what: 'mode'; path: string; mode: string }
  | { what: 'upload'; folder: string; files: readonly string[] };

/** What programs connect to through the SDKs: a sandbox, or a volume. */
type Subject = { kind: 'Sandbox' | 'Volume'; id: string };

const json = (value: unknown) => JSON.stringify(value);
const nameOf = ({ kind }: Subject) => kind.toLowerCase();

/** Programs that connect to something and do this with it, by language. */
function programs(subject: Subject, js: string, python: string, imports = ''): Record<string, string> {
  const [name, id] = [nameOf(subject), json(subject.id)];
  return {
    JavaScript:
      `${imports}import { ${subject.kind} } from 'e2b';\n\n` +
      `const ${name} = await ${subject.kind}.connect(${id});\n${js}`,
    Python: `from e2b import ${subject.kind}\n\n${name} = ${subject.kind}.connect(${id})\n${python}`,
  };
}

/** Programs that change files of a sandbox or of a volume, by language. */
export function codeOfFileChange(subject: Subject, change: FileChange): Record<string, string> {
  const isVolume = subject.kind === 'Volume';
  const files = isVolume ? 'volume' : 'sandbox.files';
  // A volume replaces an existing file only when told to.
  const write = isVolume
    ? { js: 'writeFile', jsForce: ', { force: true }', python: 'write_file', pythonForce: ', force=True' }
    : { js: 'write', jsForce: '', python: 'write', pythonForce: '' };
  const both = (method: { js: string; python: string }, ...values: string[]) => {
    const given = values.map(json).join(', ');
    return programs(subject, `await ${files}.${method.js}(${given});`, `${files}.${method.python}(${given})`);
  };
  const same = (name: string) => ({ js: name, python: name });
  switch (change.what) {
    case 'folder':
      return both({ js: 'makeDir', python: 'make_dir' }, change.path);
    case 'remove':
      return both(same('remove'), change.path);
    case 'rename':
      return both(same('rename'), change.path, change.to);
    case 'mode':
      return codeOfCommand(subject.id, `chmod -- ${change.mode} ${shellText(change.path)}`);
    case 'write': {
      const given = `${json(change.path)}, ${json(change.text)}`;
      return programs(
        subject,
        `await ${files}.${write.js}(${given}${write.jsForce});`,
        `${files}.${write.python}(${given}${write.pythonForce})`,
      );
    }
    case 'upload': {
      const into = json(change.folder.endsWith('/') ? change.folder : `${change.folder}/`);
      return programs(
        subject,
        `for (const path of ${json(change.files)})\n` +
          `  await ${files}.${write.js}(${into} + path, new Blob([await readFile(path)])${write.jsForce});`,
        `for path in ${pythonOf(change.files)}:\n    with open(path, "rb") as file:\n` +
          `        ${files}.${write.python}(${into} + path, file${write.pythonForce})`,
        `import { readFile } from 'node:fs/promises';\n`,
      );
    }
  }
}

/** Programs that run a command in a sandbox as its usual user or as another, by language. */
function codeOfCommand(id: string, command: string, user?: string): Record<string, string> {
  const text = json(command);
  return programs(
    { kind: 'Sandbox', id },
    `await sandbox.commands.run(${text}${user === undefined ? '' : `, { user: ${json(user)} }`});`,
    `sandbox.commands.run(${text}${user === undefined ? '' : `, user=${json(user)}`})`,
  );
}

/** Programs that send a signal to any user's process in a sandbox, by language. */
export const codeOfSignal = (id: string, pid: number, signal: 'SIGTERM' | 'SIGKILL'): Record<string, string> =>
  codeOfCommand(id, `kill -${signal.slice(3)} ${pid}`, 'root');
