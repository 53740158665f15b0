import { Template, waitForPort } from 'e2b';
import { type Feature, same } from './feature.ts';
import { withSandbox } from './sandbox.ts';

/** Sandboxes from this template run on gVisor: the laboratory starts the platform with that setting. */
const gvisorTemplate = 'on-gvisor';

const commandMs = 120_000;

/** Building, and the second driver. */
export const templateFeatures: Feature[] = [
  {
    name: 'template build',
    async look() {
      const definition = Template()
        .fromTemplate('base')
        .setEnvs({ FOO: 'bar' })
        .runCmd('echo "$FOO" > /home/user/made')
        .runCmd('rm -rf /usr/share/doc', { user: 'root' })
        .setStartCmd('python3 -m http.server 8000', waitForPort(8000));
      await Template.build(definition, 'lab', { cpuCount: 1, memoryMB: 512 });
      return withSandbox(async sandbox => {
        const { stdout } = await sandbox.commands.run(
          'cat made; ls /usr/share/doc 2>&1 | wc -l; curl -s localhost:8000/made',
          { timeoutMs: commandMs },
        );
        same(stdout, 'bar\n1\nbar\n', 'what the steps made');
      }, 'lab');
    },
  },
  {
    name: 'gVisor',
    async look() {
      await Template.build(Template().fromTemplate('base').runCmd('true'), gvisorTemplate, {
        cpuCount: 1,
        memoryMB: 512,
      });
      return withSandbox(async sandbox => {
        const { stdout } = await sandbox.commands.run('id -un; dmesg | head -1', { timeoutMs: commandMs });
        if (!stdout.startsWith('user\n') || !/gvisor/i.test(stdout)) throw new Error(stdout);
      }, gvisorTemplate);
    },
  },
];
