import { Template } from 'e2b';
import { summarize } from '../measure/statistics.ts';
import type { Client, Target } from './client.ts';
import type { Figure } from './report.ts';

/** Lets the next one be restored before it is requested. */
const restorePauseMs = 600;
/** Creates before the measurement: after a single request, nothing is restored ahead yet. */
const firstCreates = 4;
const serverPort = 8000;

/** Creates one after another from a template with a server, each until its server has answered. */
export async function templateServer(client: Client, { url, apiKey }: Target, count: number): Promise<Figure[]> {
  const name = 'bench-server';
  const template = Template()
    .fromTemplate('base')
    .setStartCmd(`python3 -m http.server ${serverPort}`, `curl -sf localhost:${serverPort} > /dev/null`);
  await Template.build(template, name, { apiKey, apiUrl: url, cpuCount: 2, memoryMB: 512 });
  const creates: number[] = [];
  const answers: number[] = [];
  for (let index = -firstCreates; index < count; index++) {
    await Bun.sleep(restorePauseMs);
    const start = performance.now();
    const sandbox = await client.create({ templateID: name });
    const created = performance.now();
    const response = await fetch(url, {
      headers: { ...client.toAgent(sandbox), 'e2b-sandbox-port': String(serverPort) },
    });
    if (!response.ok) throw new Error(`the server of a template answered ${response.status}`);
    await response.text();
    if (index >= 0) {
      creates.push(created - start);
      answers.push(performance.now() - start);
    }
    await client.kill(sandbox);
  }
  return [
    { name: 'create, template with a server', goal: 'p50 ≤ 40 ms', summary: summarize(creates) },
    { name: "create, template with a server, to the server's answer", goal: '', summary: summarize(answers) },
  ];
}
