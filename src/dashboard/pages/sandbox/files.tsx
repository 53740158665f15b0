import { useNavigate, useSearch } from '@tanstack/react-router';
import { useRef } from 'react';
import { agentFile, callAgent, streamAgent } from '../../api/agent.ts';
import type { Target } from '../../api/agent.ts';
import { codeOfFileChange } from '../../code/sdk-code.ts';
import { Files } from '../../files/files.tsx';
import type { FilesSearch } from '../../files/search.ts';
import { hitsMax, hitsOf } from '../../files/find/hits-of.ts';
import type { Entry, FileStore } from '../../files/store.ts';
import { folderOf, nameOf } from '../../files/paths.ts';
import { NeedsRunning } from './needs-running.tsx';
import { isTarFine, runProgram } from './run-program.ts';
import { useSandbox } from './sandbox.tsx';
import { useTarget } from './target.ts';

/** An entry as the agent reports it. */
type AgentEntry = {
  name: string;
  path: string;
  type?: string;
  size?: string | number;
  modifiedTime?: string;
  permissions?: string;
  owner?: string;
};

/**
 * Searches for a text in the files of a folder: skips binary files and links, and prints no more lines than are shown.
 * A line with only NUL says that the time was over before all files were searched.
 */
const finding = `command -v grep >/dev/null || { echo 'There is no grep in this sandbox' >&2; exit 1; }
{ timeout 60 grep -rnIHsZF -D skip --exclude-dir=.git --exclude-dir=/proc --exclude-dir=/sys -e "$1" -- "$2"
  [ $? -ne 124 ] || printf '\\0\\n'; } |
  cut -b1-4600 | head -n "$3"`;

/** The files of a sandbox. */
export function SandboxFiles() {
  const target = useTarget();
  const search: FilesSearch = useSearch({ strict: false });
  const navigate = useNavigate();
  const { sandboxId } = useSandbox();
  const { file } = search;
  const last = useRef({ target, file });
  if (target || last.current.target?.sandboxId !== sandboxId) last.current = { target, file };
  const go = (next: FilesSearch) => void navigate({ to: '.', search: next });
  // A text that somebody edits stays while its sandbox is paused, which may happen by itself, and after its end. Any
  // other file would have to be read.
  const reached = file !== undefined && file === last.current.file ? last.current.target : target;
  return (
    <>
      {!target && <NeedsRunning what="Its files" />}
      {reached && (
        <Files key={sandboxId} store={sandboxStore(reached)} search={search} onGo={go} mayChange={target !== null} />
      )}
    </>
  );
}

function sandboxStore(target: Target): FileStore {
  const call = <T,>(method: string, message: unknown) =>
    callAgent<T>(target, `filesystem.Filesystem/${method}`, message);
  return {
    key: target.sandboxId,
    home: '/home/user',
    async list(path) {
      const { entries = [] } = await call<{ entries?: AgentEntry[] }>('ListDir', { path, depth: 1 });
      return entries.map(entryOf);
    },
    stat: async path => entryOf((await call<{ entry: AgentEntry }>('Stat', { path })).entry),
    read: path => agentFile(target, { path }),
    codeFor: path => `await sandbox.files.read(${JSON.stringify(path)})`,
    codeOf: change => codeOfFileChange({ kind: 'Sandbox', id: target.sandboxId }, change),
    write: (path, content, signal) =>
      agentFile(
        target,
        { path },
        {
          method: 'POST',
          headers: { 'Content-Type': 'application/octet-stream' },
          body: content,
          ...(signal && { signal }),
        },
      ),
    makeFolder: path => call('MakeDir', { path }),
    remove: path => call('Remove', { path }),
    rename: (source, destination) => call('Move', { source, destination }),
    changeMode: (path, mode) => runProgram(target, 'chmod', ['--', mode, path]),
    async archive(path) {
      const [folder, name] = [folderOf(path), nameOf(path)];
      return new Blob(await runProgram(target, 'tar', ['-czf', '-', '-C', folder, '--', name], { isFine: isTarFine }));
    },
    async find(path, text, signal) {
      const args = ['-c', finding, 'sh', text, path, String(hitsMax + 1)];
      const parts = await runProgram(target, 'sh', args, { signal });
      return hitsOf(await new Blob(parts).text());
    },
    async watch(path, onChange, signal) {
      for await (const message of streamAgent<{ filesystem?: object }>(
        target,
        'filesystem.Filesystem/WatchDir',
        { path },
        signal,
      ))
        if (message.filesystem) onChange();
    },
  };
}

function entryOf({ name, path, type, size, modifiedTime, permissions, owner }: AgentEntry): Entry {
  return {
    name,
    path,
    isFolder: type === 'FILE_TYPE_DIRECTORY',
    bytes: Number(size ?? 0),
    changedAt: modifiedTime,
    owner: owner ?? '',
    mode: permissions ?? '',
  };
}
