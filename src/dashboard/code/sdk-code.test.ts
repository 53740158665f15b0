import { expect, test } from 'bun:test';
import { codeOfFileChange, codeOfSignal } from './sdk-code.ts';
import type { FileChange } from './sdk-code.ts';

/** What programs do with a thing once they have connected to it. */
const bodyOf = ({ JavaScript = '', Python = '' }: Record<string, string>) =>
  [JavaScript, Python].map(text => text.slice(text.indexOf('connect(')).split('\n').slice(1).join('\n'));
const inSandbox = (change: FileChange) => bodyOf(codeOfFileChange({ kind: 'Sandbox', id: 'i1' }, change));
const inVolume = (change: FileChange) => bodyOf(codeOfFileChange({ kind: 'Volume', id: 'v1' }, change));

test('programs of both SDKs connect to what is changed', () => {
  expect(codeOfFileChange({ kind: 'Sandbox', id: 'i1' }, { what: 'remove', path: '/a' })).toEqual({
    JavaScript:
      `import { Sandbox } from 'e2b';\n\nconst sandbox = await Sandbox.connect("i1");\n` +
      `await sandbox.files.remove("/a");`,
    Python: `from e2b import Sandbox\n\nsandbox = Sandbox.connect("i1")\nsandbox.files.remove("/a")`,
  });
});

test('a change of files is code, for a sandbox and for a volume', () => {
  expect(inSandbox({ what: 'folder', path: '/a "b"' })).toEqual([
    'await sandbox.files.makeDir("/a \\"b\\"");',
    'sandbox.files.make_dir("/a \\"b\\"")',
  ]);
  expect(inSandbox({ what: 'rename', path: '/a', to: '/b' })).toEqual([
    'await sandbox.files.rename("/a", "/b");',
    'sandbox.files.rename("/a", "/b")',
  ]);
  expect(inVolume({ what: 'write', path: '/a', text: 'one\n' })).toEqual([
    'await volume.writeFile("/a", "one\\n", { force: true });',
    'volume.write_file("/a", "one\\n", force=True)',
  ]);
  expect(inVolume({ what: 'remove', path: '/a' })).toEqual(['await volume.remove("/a");', 'volume.remove("/a")']);
});

test('a mode is set by a command, whatever the file is named; files of one’s own are read where the code runs', () => {
  const command = JSON.stringify(String.raw`chmod -- 750 '/it'\''s'`);
  expect(inSandbox({ what: 'mode', path: `/it's`, mode: '750' })).toEqual([
    `await sandbox.commands.run(${command});`,
    `sandbox.commands.run(${command})`,
  ]);
  expect(inVolume({ what: 'upload', folder: '/', files: ['a', 'b/c'] })).toEqual([
    'for (const path of ["a","b/c"])\n' +
      '  await volume.writeFile("/" + path, new Blob([await readFile(path)]), { force: true });',
    'for path in ["a", "b/c"]:\n    with open(path, "rb") as file:\n' +
      '        volume.write_file("/" + path, file, force=True)',
  ]);
});

test('a signal is sent as who may send it to every process', () => {
  expect(bodyOf(codeOfSignal('i1', 7, 'SIGTERM'))).toEqual([
    'await sandbox.commands.run("kill -TERM 7", { user: "root" });',
    'sandbox.commands.run("kill -TERM 7", user="root")',
  ]);
});
