import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { Sandbox, Volume } from 'e2b';
import type { Page } from 'playwright-core';
import { noBrowser, seriousFindings } from './support/browser.ts';
import { shareSignedIn } from './support/signed-in.ts';
import type { SignedIn } from './support/signed-in.ts';

/** A name and a text that would run if either became markup. */
const hostile = `"><img src=x onerror=alert(1)>`;

describe('files in the dashboard', { skip: noBrowser ?? false }, () => {
  const begin = shareSignedIn();
  let signedIn: SignedIn;
  let page: Page;
  let folder: string;

  const entry = (name: string) => page.getByRole('button', { name: `File ${name}`, exact: true });
  const answer = async (title: string, label: string, text: string, action: string) => {
    const dialog = page.getByRole('dialog', { name: title });
    await dialog.getByLabel(label).fill(text);
    await dialog.getByRole('button', { name: action }).click();
  };
  /** What the files of a sandbox and of a volume have in common. */
  const goThrough = async (there: {
    read(path: string): Promise<string>;
    write(path: string, text: string): Promise<unknown>;
  }) => {
    await page.getByLabel('Folder to upload').setInputFiles(join(folder, 'project'));
    await page.getByText('3 files uploaded').waitFor();
    await page.getByRole('button', { name: 'Folder project', exact: true }).click();
    await page.getByRole('button', { name: 'Folder src', exact: true }).click();
    await entry(hostile).click();
    const editor = page.getByRole('textbox');
    assert.equal(await editor.inputValue(), hostile);
    assert.deepEqual(await seriousFindings(page), []);
    const path = new URL(page.url()).searchParams.get('file') ?? '';
    await editor.fill('written here');
    await page.keyboard.press('Control+s');
    await page.getByText('Saved', { exact: true }).waitFor();
    assert.equal(await there.read(path), 'written here');

    // Changes made there meanwhile are not lost without a question.
    await there.write(path, 'written there');
    await editor.fill('written here again');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('dialog', { name: 'It has changed there' }).getByRole('button', { name: 'Cancel' }).click();
    assert.equal(await there.read(path), 'written there');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('dialog', { name: 'It has changed there' }).getByRole('button', { name: 'Overwrite' }).click();
    await page.getByText('not saved').waitFor({ state: 'detached' });
    assert.equal(await there.read(path), 'written here again');

    await page.getByRole('button', { name: 'Back' }).click();
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: `Download ${hostile}` }).click();
    assert.equal(await readFile(await (await download).path(), 'utf8'), 'written here again');
    await entry('bytes').click();
    await page.getByText('00000000  00 01 02 ff').waitFor();
    await page.goBack();
    await page.getByRole('button', { name: `Delete ${hostile}` }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await entry(hostile).waitFor({ state: 'detached' });

    await page.getByRole('button', { name: 'New folder' }).click();
    await answer('New folder', 'Name', '.hidden', 'Make');
    await page.getByRole('button', { name: 'Folder .hidden', exact: true }).waitFor();
    await page.getByLabel('Hidden files').uncheck();
    await page.getByRole('button', { name: 'Folder .hidden', exact: true }).waitFor({ state: 'detached' });
    await page.reload();
    await entry('bytes').waitFor();
    assert.equal(await page.getByLabel('Hidden files').isChecked(), false);
    await page.getByRole('button', { name: 'New file' }).click();
    await answer('New file', 'Name', 'empty.txt', 'Make');
    await page.getByRole('textbox').fill('no longer');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('not saved').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Back' }).click();
    await entry('empty.txt').waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    assert.deepEqual(signedIn.window.complaints, []);
    await replaceNothingUnasked();
    assert.equal(await there.read(path.replace(hostile, 'empty.txt')), 'uploaded');
    assert.deepEqual(signedIn.window.complaints, []);
  };
  /** Neither a new file nor an upload replaces an existing one without a question. */
  const replaceNothingUnasked = async () => {
    await page.getByRole('button', { name: 'New file' }).click();
    await answer('New file', 'Name', 'empty.txt', 'Make');
    await page.getByText('empty.txt is there already').waitFor();
    const upload = () =>
      page
        .getByLabel('Files to upload')
        .setInputFiles([{ name: 'empty.txt', mimeType: 'text/plain', buffer: Buffer.from('uploaded') }]);
    const question = page.getByRole('dialog', { name: 'Replace empty.txt?' });
    await upload();
    assert.deepEqual(await seriousFindings(page), []);
    await question.getByRole('button', { name: 'Cancel' }).click();
    await upload();
    await question.getByRole('button', { name: 'Replace' }).click();
    await page.getByText('empty.txt uploaded').waitFor();
  };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'atoll-files-'));
    await mkdir(join(folder, 'project/src'), { recursive: true });
    await writeFile(join(folder, 'project/README.md'), 'hello');
    await writeFile(join(folder, 'project/src', hostile), hostile);
    await writeFile(join(folder, 'project/src/bytes'), Uint8Array.of(0, 1, 2, 255));
    signedIn = await begin();
    page = signedIn.page;
  });
  after(async () => {
    await signedIn?.[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  test('files of a sandbox: folders go up, text is edited, changes made inside show by themselves', async () => {
    const sandbox = await Sandbox.create('base', signedIn.options);
    await page.goto(`/dashboard/sandboxes/${sandbox.sandboxId}/files`);
    await page.getByText('project').waitFor({ state: 'detached' });
    await goThrough({ read: path => sandbox.files.read(path), write: (path, text) => sandbox.files.write(path, text) });
    await entry('empty.txt').click();
    await page.getByRole('button', { name: /^Copy await sandbox\.files\.read\(".*empty\.txt"\)$/ }).click();
    assert.match(
      await page.evaluate<string>('navigator.clipboard.readText()'),
      /^await sandbox\.files\.read\("\/.*"\)$/,
    );
    await page.goBack();
    await page.getByRole('button', { name: 'Rename empty.txt' }).click();
    await answer('Rename empty.txt', 'New name', 'bytes', 'Rename');
    await page.getByRole('dialog', { name: 'Replace bytes?' }).getByRole('button', { name: 'Cancel' }).click();
    assert.equal((await sandbox.files.read('/home/user/project/src/bytes', { format: 'bytes' })).length, 4);
    await page.getByRole('button', { name: 'Rename empty.txt' }).click();
    await answer('Rename empty.txt', 'New name', 'full.txt', 'Rename');
    await entry('full.txt').waitFor();
    await page.getByRole('button', { name: /^Mode of full\.txt: / }).click();
    await answer('Mode of full.txt', 'Mode, an octal number', '750', 'Change');
    await page.getByRole('button', { name: 'Mode of full.txt: -rwxr-x---' }).waitFor();
    const { stdout } = await sandbox.commands.run('stat -c %a /home/user/project/src/full.txt');
    assert.equal(stdout, '750\n');
    await sandbox.files.write('/home/user/project/src/from-inside', 'x');
    await entry('from-inside').waitFor();
    await page.getByLabel('Order').selectOption('size');
    await page.waitForURL(/order=size/);
    assert.deepEqual(await page.getByRole('button', { name: /^File / }).allTextContents(), [
      'full.txt',
      'bytes',
      'from-inside',
    ]);
    await page.goto(`/dashboard/sandboxes/${sandbox.sandboxId}/files`);
    const kept = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download project' }).click();
    const archive = await kept;
    assert.equal(archive.suggestedFilename(), 'project.tar.gz');
    const listed = spawnSync('tar', ['-tzf', await archive.path()], { encoding: 'utf8' });
    assert.deepEqual(listed.stdout.trim().split('\n').sort(), [
      'project/',
      'project/README.md',
      'project/src/',
      'project/src/.hidden/',
      'project/src/bytes',
      'project/src/from-inside',
      'project/src/full.txt',
    ]);
    await page.getByLabel('Go to a path').fill('/home/user/pro');
    await page.locator('datalist option[value="/home/user/project"]').waitFor({ state: 'attached' });
    await page.getByLabel('Go to a path').fill('/home/user/project/');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Folder src', exact: true }).waitFor();
    // Finds lines in all files of a folder, and the way to each; names in programs are coloured.
    const program = `# ${hostile}\ndef f(x):\n    return "needle -e" + 12\n`;
    await sandbox.files.write('/home/user/project/src/main.py', program);
    await page.getByLabel('Find in files').fill('needle -e');
    await page.keyboard.press('Enter');
    const found = page.getByRole('region', { name: 'Found lines' });
    await found.getByRole('button', { name: 'src/main.py:3' }).waitFor();
    assert.equal(await found.getByRole('listitem').count(), 1);
    assert.deepEqual(await seriousFindings(page), []);
    await page.reload();
    await found.getByRole('button', { name: 'src/main.py:3' }).click();
    const text = page.getByRole('textbox', { name: 'Text of /home/user/project/src/main.py' });
    await text.waitFor();
    assert.equal(await page.evaluate('String(getSelection())'), '    return "needle -e" + 12');
    const coloured = (kind: string) => page.evaluate<number>(`CSS.highlights.get('code-${kind}').size`);
    assert.deepEqual(await Promise.all(['comment', 'keyword', 'string', 'number'].map(coloured)), [1, 2, 1, 1]);
    await text.press('End');
    await text.pressSequentially(' + 13');
    assert.equal(await coloured('number'), 2);
    assert.deepEqual(await seriousFindings(page), []);
    await page.getByRole('button', { name: 'Back' }).click();
    await page.getByRole('dialog', { name: 'Leave main.py unsaved?' }).getByRole('button', { name: 'Leave' }).click();
    await page.getByLabel('Find in files').fill('nowhere at all');
    await page.keyboard.press('Enter');
    await page.getByText('No file here has that').waitFor();
    await sandbox.files.write('/home/user/people.csv', `name,says\n"Zoë, B.","${hostile.replaceAll('"', '""')}"\n`);
    await page.goto(`/dashboard/sandboxes/${sandbox.sandboxId}/files?file=/home/user/people.csv`);
    const table = page.getByRole('region', { name: 'Table of /home/user/people.csv' });
    await table.getByRole('cell', { name: 'Zoë, B.' }).waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    await page.getByRole('button', { name: 'Text', exact: true }).click();
    await page.getByRole('textbox').waitFor();
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('an upload says how far it is on whatever page is shown, and is stopped from there', async () => {
    const sandbox = await Sandbox.create('base', signedIn.options);
    await sandbox.files.write('/home/user/there.txt', 'text');
    await page.goto(`/dashboard/sandboxes/${sandbox.sandboxId}/files`);
    await entry('there.txt').waitFor();
    const isWrite = (url: URL) => url.pathname === '/files' && url.searchParams.get('path') === '/home/user/large.bin';
    // It takes as long as somebody looks at it.
    await page.route(isWrite, () => undefined);
    const large = { name: 'large.bin', mimeType: 'application/octet-stream', buffer: Buffer.alloc(4096) };
    await page.getByLabel('Files to upload').setInputFiles([large]);
    const progress = page.getByRole('status').filter({ hasText: 'Uploading /home/user/large.bin' });
    await progress.getByText('0 of 1 files, 0 B of 4.0 KiB').waitFor();
    await entry('there.txt').click();
    await page.getByRole('textbox', { name: 'Text of /home/user/there.txt' }).waitFor();
    await progress.waitFor();
    await page.getByRole('link', { name: 'Logs' }).click();
    await page.getByRole('log').waitFor();
    await progress.waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    await page.getByRole('link', { name: 'Templates' }).click();
    await page.getByRole('heading', { level: 1, name: 'Templates' }).waitFor();
    await progress.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('Stopped: 0 of 1 files are there').waitFor();
    await progress.waitFor({ state: 'detached' });
    await page.unroute(isWrite);
    await sandbox.kill();
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('files of a volume: the same', async () => {
    // Only this tells the SDK where volumes' content is.
    process.env['E2B_VOLUME_API_URL'] = signedIn.platform.ready.url;
    const volume = await Volume.create('shared', signedIn.options);
    await page.goto('/dashboard/volumes');
    await page
      .getByRole('row', { name: 'shared' })
      .getByText(/[\d.]+ [KM]iB of [\d.]+ GiB/)
      .waitFor();
    await page.getByRole('link', { name: 'shared' }).click();
    await page.getByText('This folder is empty').waitFor();
    await goThrough({
      read: path => volume.readFile(path),
      write: (path, text) => volume.writeFile(path, text, { force: true }),
    });
  });
});
