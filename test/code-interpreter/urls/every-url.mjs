// Every method of the npm clients that makes a URL, used unchanged in the environment that a start prints. Reports the
// outcome of each.

import { Sandbox } from '@e2b/code-interpreter';
import { Volume } from 'e2b';

const sandbox = await Sandbox.create({ timeoutMs: 120_000 });
const came = {};
const context = await sandbox.createCodeContext({ cwd: '/tmp' });
came.runCode = (await sandbox.runCode('6 * 7')).text;
came.context = (await sandbox.runCode('import os; os.getcwd()', { context })).text;
await sandbox.restartCodeContext(context);
came.listed = (await sandbox.listCodeContexts()).some(({ id }) => id === context.id);
await sandbox.removeCodeContext(context);

const body = new FormData();
body.append('file', new Blob(['uploaded']), 'a.txt');
came.uploadUrl = (await fetch(await sandbox.uploadUrl('a.txt'), { method: 'POST', body })).status;
came.downloadUrl = await (await fetch(await sandbox.downloadUrl('a.txt'))).text();

await sandbox.commands.run(
  'mkdir -p web && echo shown > web/index.html && echo mcp > web/mcp && echo vnc > web/vnc.html',
);
for (const port of [8000, 50005, 6080])
  await sandbox.commands.run(`python3 -m http.server --directory web ${port}`, { background: true, timeoutMs: 0 });
const shown = async url => {
  for (;;) {
    const answer = await fetch(url);
    if (answer.ok) return (await answer.text()).trim();
    await answer.text();
  }
};
came.getHost = await shown(`https://${sandbox.getHost(8000)}/`);
came.getMcpUrl = await shown(sandbox.getMcpUrl());
// As the desktop's stream makes its own.
came.streamUrl = await shown(`https://${sandbox.getHost(6080)}/vnc.html`);

const volume = await Volume.create('urls');
await volume.writeFile('/file', 'in the volume');
came.volume = await volume.readFile('/file');
await Volume.destroy(volume.volumeId);
await sandbox.kill();
console.log(JSON.stringify(came));
// The code interpreter does not clear the timers of its requests.
process.exit(0);
