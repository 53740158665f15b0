import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { issueCertificate, makeAuthority } from '../../base/crypto/certificate.ts';
import { createLog } from '../../base/telemetry/log.ts';
import { certificateFromFiles } from './files.ts';

const authority = makeAuthority('test', 1);
const [first, second] = ['one', 'two'].map(name => issueCertificate(authority, [name], 1)) as [Pair, Pair];
type Pair = ReturnType<typeof issueCertificate>;

let folder: string;
let lines: string[];
beforeEach(() => void ([folder, lines] = [mkdtempSync(join(tmpdir(), 'atoll-certificate-')), []]));
afterEach(() => rmSync(folder, { recursive: true }));
const [certFile, keyFile] = [() => join(folder, 'cert.pem'), () => join(folder, 'key.pem')];
const write = ({ certificate, key }: Partial<Pair>) => {
  if (certificate !== undefined) writeFileSync(certFile(), certificate);
  if (key !== undefined) writeFileSync(keyFile(), key);
};
const open = () =>
  certificateFromFiles(
    { certFile: certFile(), keyFile: keyFile() },
    createLog('info', line => void lines.push(line)),
  );
const levels = () => lines.map(line => (JSON.parse(line) as { level: string }).level);

test('a pair that is renewed file by file is used once both are there', () => {
  write(first);
  const source = open();
  source.refresh();
  expect([source.current, levels()]).toEqual([first, []]);
  write({ certificate: second.certificate });
  source.refresh();
  source.refresh();
  // The log says it once: files that stay the same don't get better.
  expect([source.current, levels()]).toEqual([first, ['warn']]);
  write({ key: second.key });
  source.refresh();
  expect([source.current, levels()]).toEqual([second, ['warn', 'info']]);
});

test('a link that is pointed at another file is a change', () => {
  for (const [name, text] of Object.entries({ a: first.certificate, b: second.certificate }))
    writeFileSync(join(folder, name), text);
  symlinkSync('a', certFile());
  write({ key: first.key });
  const source = open();
  symlinkSync('b', join(folder, 'next'));
  renameSync(join(folder, 'next'), certFile());
  write({ key: second.key });
  source.refresh();
  expect(source.current).toEqual(second);
});

test('if the files are gone, the earlier certificate stays until there is one again', () => {
  write(first);
  const source = open();
  rmSync(certFile());
  source.refresh();
  expect([source.current, levels()]).toEqual([first, ['warn']]);
  write(second);
  source.refresh();
  expect(source.current).toEqual(second);
});

test('a start without a pair of files fails, in words that name them', () => {
  for (const pair of [{}, { key: first.key }, { certificate: first.certificate, key: second.key }]) {
    write(pair);
    const says = `The certificate ${certFile()} with the key ${keyFile()} can't be used`;
    expect(open).toThrow(expect.objectContaining({ code: 'invalid', message: expect.stringContaining(says) }));
  }
});
